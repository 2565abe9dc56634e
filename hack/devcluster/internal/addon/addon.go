// Package addon installs what some clusters have and others do not.
package addon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/cluster"
)

// all lists the add-ons; each has a file in this folder.
var all = map[string]func(context.Context, *cluster.Cluster) error{
	"postgres-operator": postgresOperator,
	"rook-crds":         rookCRDs,
}

// Names lists the add-ons.
func Names() []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Known returns an error that lists the add-ons unless name is one.
func Known(name string) error {
	if _, ok := all[name]; !ok {
		return fmt.Errorf("there is no add-on %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

// Install installs an add-on, or brings it up to date, and waits until it is ready.
func Install(ctx context.Context, c *cluster.Cluster, name string) error {
	if err := Known(name); err != nil {
		return err
	}
	if err := all[name](ctx, c); err != nil {
		return fmt.Errorf("add-on %s: %w", name, err)
	}
	return nil
}

// applyCRDs applies kinds and waits until the API server serves them. Right after the first apply they have no
// conditions at all yet, which kubectl wait takes for an error.
func applyCRDs(ctx context.Context, c *cluster.Cluster, manifests string, names ...string) error {
	if err := c.Apply(ctx, []byte(manifests)); err != nil {
		return err
	}
	wait := []string{"wait", "--for=condition=Established", "--timeout=60s"}
	for _, name := range names {
		wait = append(wait, "crd/"+name)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := c.Kubectl(ctx, nil, wait...)
		if err == nil || !strings.Contains(err.Error(), "conditions accessor error") || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
