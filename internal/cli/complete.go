package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"authstack.dev/authstack/api/v1alpha1"
)

// A shell waits for completions, so a cluster that does not answer must not hold it up.
const completionPatience = 3 * time.Second

func (a *App) completeStacks(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &v1alpha1.AuthStackList{}
	names := []string{}
	if a.completions(cmd, list) {
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	return startingWith(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

func (a *App) completeTests(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	list := &v1alpha1.LatencyTestList{}
	names := []string{}
	if a.completions(cmd, list) {
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	return startingWith(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

func (a *App) completions(cmd *cobra.Command, list client.ObjectList) bool {
	k8s, namespace, err := a.cluster.client()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	return k8s.List(ctx, list, client.InNamespace(namespace)) == nil
}

func startingWith(names []string, prefix string) []string {
	var found []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}
