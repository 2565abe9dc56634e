package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"authstack.dev/authstack/hack/devcluster/internal/ceph"
)

const cephLong = `Look at the cluster's Ceph, and break it.

  devcluster ceph status          OSDs, health, space, what was ordered below
  devcluster ceph osd stop 2      one of three stopped: writes go on
  devcluster ceph osd stop 1      two stopped: writes wait, and nothing says so
  devcluster ceph osd start 1     and go on
  devcluster ceph osd slow 0 10   OSD 0 delays its messages to others by up to 10 ms
  devcluster ceph slow 10         all of them do: a sync takes 17 to 20 ms instead of 3
  devcluster ceph slow off        and no longer
  devcluster ceph kill            kill -9 of all OSDs at once: a power cut
  devcluster ceph start           all of them are started again

An order stands until it is taken back; devcluster up takes back stops.
Anything else: ceph --conf $STATE/config/ceph.conf …, rbd --conf …`

func newCeph(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "ceph", Short: "Look at the cluster's Ceph, stop, slow down and kill its OSDs", Long: cephLong}
	status := &cobra.Command{
		Use: "status", Short: "Tell how Ceph is, and what was ordered", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.cluster()
			if err != nil {
				return err
			}
			return c.CephStatus(cmd.Context(), cmd.OutOrStdout())
		},
	}
	kill := &cobra.Command{
		Use: "kill", Short: "End all OSDs by SIGKILL, and keep them down", Args: cobra.NoArgs,
		RunE: o.order("killing all OSDs", func(ctx context.Context, c ceph.Ceph, _ []string) error {
			return c.Kill(ctx, ceph.AllOSDs()...)
		}),
	}
	start := &cobra.Command{
		Use: "start", Short: "Start all OSDs that are down, and wait until Ceph can be written to", Args: cobra.NoArgs,
		RunE: o.order("starting all OSDs", func(ctx context.Context, c ceph.Ceph, _ []string) error {
			return c.Start(ctx, ceph.AllOSDs()...)
		}),
	}
	slow := &cobra.Command{
		Use: "slow MS|off", Short: "Delay messages between all OSDs by up to MS milliseconds", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			delay, err := ceph.ParseDelay(args[0])
			if err != nil {
				return err
			}
			return o.slow(cmd.Context(), delay, ceph.AllOSDs()...)
		},
	}
	cmd.AddCommand(status, newOSD(o), slow, kill, start)
	return cmd
}

func newOSD(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "osd", Short: "Stop, start or slow down one OSD"}
	one := func(do func(ceph.Ceph, context.Context, ...int) error) func(context.Context, ceph.Ceph, []string) error {
		return func(ctx context.Context, c ceph.Ceph, args []string) error {
			n, err := ceph.ParseOSD(args[0])
			if err != nil {
				return err
			}
			return do(c, ctx, n)
		}
	}
	cmd.AddCommand(
		&cobra.Command{Use: "stop N", Short: "Stop one OSD until it is started", Args: cobra.ExactArgs(1), RunE: o.order("stopping an OSD", one(ceph.Ceph.Stop))},
		&cobra.Command{Use: "start N", Short: "Start one OSD, and wait until Ceph can be written to", Args: cobra.ExactArgs(1), RunE: o.order("starting an OSD", one(ceph.Ceph.Start))},
		&cobra.Command{
			Use: "slow N MS|off", Short: "Delay one OSD's messages to others by up to MS milliseconds", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				n, err := ceph.ParseOSD(args[0])
				if err != nil {
					return err
				}
				delay, err := ceph.ParseDelay(args[1])
				if err != nil {
					return err
				}
				return o.slow(cmd.Context(), delay, n)
			},
		})
	return cmd
}

func (o *options) slow(ctx context.Context, delay time.Duration, osds ...int) error {
	c, err := o.cluster()
	if err != nil {
		return err
	}
	storage, err := c.Ceph()
	if err != nil {
		return err
	}
	what := "making Ceph as fast as it is"
	if delay > 0 {
		what = fmt.Sprintf("delaying messages by up to %s", delay)
	}
	return c.Progress.Step(what, func() error { return storage.Slow(ctx, delay, osds...) })
}

// order makes a command of something that is done to Ceph.
func (o *options) order(what string, do func(context.Context, ceph.Ceph, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.cluster()
		if err != nil {
			return err
		}
		storage, err := c.Ceph()
		if err != nil {
			return err
		}
		return c.Progress.Step(what, func() error { return do(cmd.Context(), storage, args) })
	}
}
