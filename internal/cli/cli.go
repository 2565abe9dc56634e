// Package cli is the command kubectl authstack: it reads and makes AuthStacks' measurements through
// the API server and turns verdicts into exit codes. What it prints is internal/report's.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/report"
)

// The exit codes. They are the interface to pipelines: docs/cli.md.
const (
	// ExitPassed: the verdict is Passed, or the command did what it was asked.
	ExitPassed = 0
	// ExitFailed: a valid run misses an objective, or is slower than its baseline.
	ExitFailed = 1
	// ExitInconclusive: the figures prove nothing.
	ExitInconclusive = 2
	// ExitError: there is no result, the command was used wrongly, or it was interrupted.
	ExitError = 3
)

// exitError is an exit code that is an answer and not a failure of the command.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// App is the command with the world around it.
type App struct {
	// Name it was called by: authstack, or kubectl-authstack as a plugin.
	Name string
	// Out takes what was asked for, Err progress and errors.
	Out, Err io.Writer
	// Terminal is whether Err is one, so that progress stays on one line.
	Terminal bool
	// Poll is how often a measurement is looked at.
	Poll time.Duration
	Now  func() time.Time

	cluster cluster
	lines   progressLines
}

// New is the command for a process.
func New(name string, out, err *os.File) *App {
	app := &App{Name: name, Out: out, Err: err, Poll: time.Second, Now: time.Now}
	if info, statErr := err.Stat(); statErr == nil {
		app.Terminal = info.Mode()&os.ModeCharDevice != 0
	}
	return app
}

// Run does what the arguments say and returns the exit code.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.newCommand()
	root.SetArgs(args)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	a.lines.end(a)
	var exit exitError
	switch {
	case err == nil:
		return ExitPassed
	case errors.As(err, &exit):
		return int(exit)
	}
	fmt.Fprintln(a.Err, "error:", err)
	return ExitError
}

func (a *App) newCommand() *cobra.Command {
	display := "authstack"
	if strings.HasPrefix(a.Name, "kubectl-") {
		display = "kubectl authstack"
	}
	cmd := &cobra.Command{
		Use:   "authstack",
		Short: "Show single sign-on stacks, measure them, and gate pipelines on how fast they are",
		Long: `Show single sign-on stacks, measure them, and gate pipelines on how fast they are.

Exit codes, for pipelines: 0 Passed (or done), 1 Failed or regressed, 2 Inconclusive (the figures
prove nothing), 3 an error: no result, no such stack, or the command was used wrongly.`,
		Example: `  # What runs, and what stands in its way
  DISPLAY status sso -n identity

  # Measure now and look
  DISPLAY test sso -n identity

  # In a pipeline, after a change was applied
  DISPLAY gate sso -n identity --baseline baseline.json --junit gate.xml

  # Without a cluster: a login at an address that you name
  DISPLAY test --url https://sso.example.com --provider authentik --scenario Login`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: display},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&a.cluster.namespace, "namespace", "n", "", "namespace; default: that of the kubeconfig's context")
	flags.StringVar(&a.cluster.context, "context", "", "context of the kubeconfig")
	flags.StringVar(&a.cluster.kubeconfig, "kubeconfig", "", "path of the kubeconfig")
	cmd.AddCommand(a.newStatusCommand(), a.newTestCommand(), a.newGateCommand(), a.newReportCommand(), a.newCompareCommand(), a.newBaselineCommand(), a.newSizingCommand())
	commands := append(cmd.Commands(), cmd)
	for _, c := range cmd.Commands() {
		commands = append(commands, c.Commands()...)
	}
	for _, c := range commands {
		c.Example = strings.ReplaceAll(c.Example, "DISPLAY", display)
	}
	return cmd
}

// exitOf is the exit code of a report: that of its worst verdict.
func exitOf(r *report.Report) error {
	worst := ExitPassed
	for _, one := range r.All() {
		worst = max(worst, exitCode(one.Verdict))
	}
	if worst == ExitPassed {
		return nil
	}
	return exitError(worst)
}

// exitCode of a verdict. None yet proves nothing.
func exitCode(v v1alpha1.Verdict) int {
	switch v {
	case v1alpha1.VerdictPassed:
		return ExitPassed
	case v1alpha1.VerdictFailed:
		return ExitFailed
	case v1alpha1.VerdictError:
		return ExitError
	}
	return ExitInconclusive
}
