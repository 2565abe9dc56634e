package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

func newStatusCommand(c *cluster) *cobra.Command {
	return &cobra.Command{
		Use:   "status STACK",
		Short: "Show what runs of a stack, and what stands in its way",
		Example: `  # Phases, database, settings that are not in force, and the last measurement
  kubectl authstack status demo -n sso`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k8s, namespace, err := c.client()
			if err != nil {
				return err
			}
			stack := &v1alpha1.AuthStack{}
			if err := k8s.Get(cmd.Context(), client.ObjectKey{Namespace: namespace, Name: args[0]}, stack); err != nil {
				return err
			}
			return writeStatus(cmd.OutOrStdout(), stack)
		},
	}
}

func writeStatus(out io.Writer, stack *v1alpha1.AuthStack) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	status := stack.Status
	if p := status.IdentityProvider; p != nil {
		if p.Double {
			fmt.Fprintf(w, "DOUBLE: a stand-in runs, not %s.\n\n", p.Name)
		}
		fmt.Fprintf(w, "Identity provider\t%s %s\n", p.Name, p.Version)
	}
	fmt.Fprintf(w, "Host\t%s\n", stack.Spec.Host)
	if d := status.Database; d != nil {
		fmt.Fprintf(w, "Database\tPostgreSQL %s (%s), durability %s\n", d.Version, d.Provider, d.Durability)
		if d.DurabilityNote != "" {
			fmt.Fprintf(w, "Durability\t%s\n", d.DurabilityNote)
		}
	}
	if s := status.Storage; s != nil {
		fmt.Fprintf(w, "Storage\t%s, class %s\n", s.Medium, s.StorageClassName)
	}
	if cache := status.Cache; cache != nil {
		fmt.Fprintf(w, "Cache\t%s\n", cache.Kind)
	}
	if l := status.Latency; l != nil && l.TestName != "" {
		fmt.Fprintf(w, "Latency\t%s, login p95 %s (kubectl authstack report %s -n %s)\n", l.Verdict, l.LoginP95, l.TestName, stack.Namespace)
	}
	fmt.Fprintf(w, "\nCONDITION\tSTATUS\tREASON\tMESSAGE\n")
	for _, condition := range status.Conditions {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	if d := status.Database; d != nil {
		header := false
		for _, s := range d.Settings {
			if s.InForce == s.Desired && !s.PendingRestart {
				continue
			}
			if !header {
				fmt.Fprintf(w, "\nSETTING NOT IN FORCE\tDESIRED\tIN FORCE\tREASON\n")
				header = true
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.Desired, s.InForce, s.Reason)
		}
	}
	return w.Flush()
}
