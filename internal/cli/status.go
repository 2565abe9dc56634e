package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

func (a *App) newStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status [STACK]",
		Short: "Show what runs of a stack, and what stands in its way",
		Long: `Show what runs of a stack, and what stands in its way: the conditions, the database and its durability, the settings
that are not in force, and the last measurement. Without a name: all stacks of the namespace.`,
		Example: `  # Phases, database, settings that are not in force, and the last measurement
  DISPLAY status demo -n sso

  # All stacks of the namespace in a line each
  DISPLAY status -n sso`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k8s, namespace, err := a.cluster.client()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				list := &v1alpha1.AuthStackList{}
				if err := k8s.List(cmd.Context(), list, client.InNamespace(namespace)); err != nil {
					return explain(err, "authstack", client.ObjectKey{Namespace: namespace})
				}
				return writeStacks(a.Out, namespace, list.Items)
			}
			key := client.ObjectKey{Namespace: namespace, Name: args[0]}
			stack := &v1alpha1.AuthStack{}
			if err := k8s.Get(cmd.Context(), key, stack); err != nil {
				return explain(err, "authstack", key)
			}
			return writeStatus(a.Out, stack)
		},
		ValidArgsFunction: a.completeStacks,
	}
}

// writeStacks is a line for each stack.
func writeStacks(out io.Writer, namespace string, stacks []v1alpha1.AuthStack) error {
	if len(stacks) == 0 {
		_, err := fmt.Fprintf(out, "No AuthStacks in namespace %s.\n", namespace)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "NAME\tPROVIDER\tDATABASE\tLOGIN P95\tVERDICT\tREADY\tMESSAGE\n")
	for i := range stacks {
		status := &stacks[i].Status
		provider, database, p95, verdict, ready, message := "–", "–", "–", "–", "Unknown", "not yet looked at by the operator"
		if p := status.IdentityProvider; p != nil {
			provider = p.Name + " " + p.Version
			if p.Double {
				provider = "DOUBLE of " + provider
			}
		}
		if d := status.Database; d != nil {
			database = d.Provider
		}
		if l := status.Latency; l != nil && l.Verdict != "" {
			p95, verdict = l.LoginP95, string(l.Verdict)
		}
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); c != nil {
			ready, message = string(c.Status), c.Message
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", stacks[i].Name, provider, database, p95, verdict, ready, message)
	}
	return w.Flush()
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
