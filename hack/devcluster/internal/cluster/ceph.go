package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"authstack.dev/authstack/hack/devcluster/internal/ceph"
	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
)

// ErrNoCeph is what a cluster without Ceph answers to orders for it.
var ErrNoCeph = errors.New("this cluster has no Ceph: run `devcluster up --ceph` first")

// Ceph returns the cluster's Ceph.
func (c *Cluster) Ceph() (ceph.Ceph, error) {
	r, err := c.readRecord()
	if err != nil || r.Ceph == "" {
		return ceph.Ceph{}, ErrNoCeph
	}
	return ceph.Ceph{Setup: parts.Setup{Layout: c.Layout, Network: r.Network, CephFSID: r.Ceph}}, nil
}

// equipCeph gets Ceph to where volumes can be made: what is new is registered,
// and OSDs that were stopped on order are started.
func (c *Cluster) equipCeph(ctx context.Context, setup parts.Setup) error {
	if setup.CephFSID == "" {
		return nil
	}
	storage := ceph.Ceph{Setup: setup}
	return c.Progress.Step("waiting for Ceph", func() error {
		if err := storage.Register(ctx); err != nil {
			return err
		}
		return storage.Start(ctx, ceph.AllOSDs()...)
	})
}

// cephUndisturbed tells that no OSD is stopped on order.
func (c *Cluster) cephUndisturbed(setup parts.Setup) bool {
	return setup.CephFSID == "" || len(ceph.Ceph{Setup: setup}.Held()) == 0
}

// CephStatus prints what Ceph says and what was ordered.
func (c *Cluster) CephStatus(ctx context.Context, out io.Writer) error {
	storage, err := c.Ceph()
	if err != nil {
		return err
	}
	alive, err := node.Processes(c.Layout)
	if err != nil {
		return err
	}
	state, err := storage.State(ctx)
	if err != nil {
		return fmt.Errorf("the monitor does not answer: %w", err)
	}
	delays, err := storage.Delays(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "OSD\tPID\tSTATE\tDELAY TO OTHERS")
	held := storage.Held()
	for _, n := range ceph.AllOSDs() {
		pid, ok := supervisor.PID(c.Layout, parts.OSDName(n), alive)
		what := "running"
		switch {
		case slices.Contains(held, n):
			pid, what = 0, "stopped on order"
		case !ok:
			what = "not running"
		}
		delay := "none"
		if delays[n] > 0 {
			delay = "up to " + delays[n].String()
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\n", n, pid, what, delay)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var groups []string
	for _, s := range state.PGs.States {
		groups = append(groups, fmt.Sprintf("%d %s", s.Count, s.Name))
	}
	fmt.Fprintf(out, "\nhealth            %s\n", state.Health.Status)
	for _, name := range sorted(state.Health.Checks) {
		fmt.Fprintf(out, "                  %s: %s\n", name, state.Health.Checks[name].Summary.Message)
	}
	fmt.Fprintf(out, "placement groups  %s\nused              %d of %d MiB\npool              %s\nconfiguration     %s\n",
		strings.Join(groups, ", "), state.PGs.Used>>20, state.PGs.Total>>20, parts.CephPool, storage.Setup.CephConf())
	return nil
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// newUUID is a random one, of version 4.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
