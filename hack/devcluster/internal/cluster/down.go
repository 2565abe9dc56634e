package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
)

// Down removes the cluster and all that it left anywhere. It is safe to call
// when there is nothing.
func (c *Cluster) Down(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("only root can remove a cluster")
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.Progress.Step("removing the cluster", func() error { return node.Remove(ctx, c.Layout) })
}

// ErrNotReady is returned by Status for a cluster that is not.
var ErrNotReady = errors.New("the cluster is not ready; `devcluster up` starts or heals it")

// Status prints the state of each part and whether the whole is ready.
func (c *Cluster) Status(ctx context.Context, out io.Writer) error {
	r, err := c.readRecord()
	if err != nil {
		fmt.Fprintf(out, "no cluster in %s\n", c.Layout.State)
		return ErrNotReady
	}
	alive, err := node.Processes(c.Layout)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tPID\tSTATE\tLOG")
	for _, part := range c.parts() {
		pid, ok := supervisor.PID(c.Layout, part.Name, alive)
		state := "running"
		switch {
		case part.Held():
			pid, state = 0, "stopped on order"
		case !ok:
			state = "not running"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", part.Name, pid, state, supervisor.LogFile(c.Layout, part.Name))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nAPI server  %s\nnode        %s\npods        %s\nServices    %s, DNS at %s\nkubeconfig  %s\n",
		parts.Setup{Network: r.Network}.Server(), r.Network.Node(), r.Network.Pods, r.Network.Services, r.Network.DNS(), c.Layout.Kubeconfig())
	if err := c.waitReady(ctx, healthyWithin); err != nil {
		fmt.Fprintf(out, "ready       no: %v\n", err)
		return ErrNotReady
	}
	fmt.Fprintln(out, "ready       yes")
	return nil
}

// parts lists what should run, the supervisor first.
func (c *Cluster) parts() []parts.Part {
	list, err := parts.Read(supervisor.PartsFile(c.Layout))
	if err != nil {
		list = nil
	}
	return append([]parts.Part{{Name: "supervisor"}}, list...)
}

// deadParts lists the parts that should run and do not.
func (c *Cluster) deadParts() []string {
	alive, err := node.Processes(c.Layout)
	if err != nil {
		return nil
	}
	var dead []string
	for _, part := range c.parts() {
		if _, ok := supervisor.PID(c.Layout, part.Name, alive); !ok && !part.Held() {
			dead = append(dead, part.Name)
		}
	}
	return dead
}
