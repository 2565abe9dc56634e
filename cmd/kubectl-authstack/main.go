// Command kubectl-authstack shows AuthStacks and their measurements. As kubectl-authstack on the
// PATH it is `kubectl authstack`.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// exitError is an exit code that is an answer and not a failure of the command.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	err := newCommand().Execute()
	var exit exitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		os.Exit(int(exit))
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		// Not 1 to 3, which are verdicts.
		os.Exit(4)
	}
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-authstack",
		Short:         "Show single sign-on stacks and how fast they are",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c := &cluster{}
	cmd.PersistentFlags().StringVarP(&c.namespace, "namespace", "n", "", "namespace; default: that of the kubeconfig's context")
	cmd.PersistentFlags().StringVar(&c.context, "context", "", "context of the kubeconfig")
	cmd.PersistentFlags().StringVar(&c.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	cmd.AddCommand(newReportCommand(c), newStatusCommand(c))
	return cmd
}
