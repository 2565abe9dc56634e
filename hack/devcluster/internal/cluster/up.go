package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/ceph"
	"authstack.dev/authstack/hack/devcluster/internal/hostpkg"
	"authstack.dev/authstack/hack/devcluster/internal/kubeapi"
	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
)

const (
	// healthyWithin is how long a cluster that should be healthy may take to show it.
	healthyWithin = 5 * time.Second
	// readyWithin is generous: a busy machine with two cores needs 20 seconds.
	readyWithin = 4 * time.Minute
	// healedWithin is how long the old cluster is waited for before a new one is made.
	healedWithin = 90 * time.Second
)

// Up makes sure that the cluster runs, with a Ceph if that is asked for or there
// already. What is there and healthy is left alone;
// what is there and damaged is started again with its data; and if that cannot
// work, or does not, a new cluster takes its place.
func (c *Cluster) Up(ctx context.Context, wait, withCeph bool) error {
	if os.Getuid() != 0 {
		return errors.New("a cluster needs namespaces, mounts and cgroups: run this as root")
	}
	if err := c.Progress.Step("installing Debian packages for the node", func() error {
		return hostpkg.Install(ctx, hostpkg.Node)
	}); err != nil {
		return err
	}
	// A cluster that has a Ceph keeps it until it is taken down.
	if r, err := c.readRecord(); err == nil && r.Ceph != "" {
		withCeph = true
	}
	if withCeph {
		if err := c.Progress.Step("installing Debian packages for Ceph", func() error {
			return hostpkg.Install(ctx, hostpkg.Ceph)
		}); err != nil {
			return err
		}
	}
	setup := parts.Setup{Layout: c.Layout, PauseImage: pauseImage, Snapshotter: snapshotter(c.Layout.State)}
	kubernetes, err := c.Kubernetes(ctx)
	if err != nil {
		return err
	}
	storage, err := c.storage(ctx)
	if err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	old, damage := c.inspect(ctx)
	if withCeph {
		setup.CephFSID = newUUID()
	}
	if damage == nil {
		setup.Network = old.Network
		if old.Ceph != "" {
			setup.CephFSID = old.Ceph
		} else if withCeph {
			old.Ceph = setup.CephFSID
			if err := c.writeRecord(old); err != nil {
				return err
			}
		}
		if err := c.install(&setup, kubernetes, storage); err != nil {
			return err
		}
		same, err := sameParts(c, setup)
		if err != nil {
			return err
		}
		if same && c.equipped(setup) && supervisor.Running(c.Layout) && c.cephUndisturbed(setup) && c.waitReady(ctx, healthyWithin) == nil {
			c.Progress.Say("the cluster is up and ready")
			return nil
		}
		err = c.heal(ctx, setup, same)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		damage = err
	}
	if !errors.Is(damage, fs.ErrNotExist) {
		c.Progress.Say("a new cluster takes the place of the old one: %v", damage)
	}
	return c.create(ctx, setup, kubernetes, storage, wait)
}

// inspect tells what is there; an error says why it cannot be gone on with.
func (c *Cluster) inspect(ctx context.Context) (record, error) {
	r, err := c.readRecord()
	if err != nil {
		return r, err
	}
	if r.Boot != bootID() {
		return r, errors.New("the machine was started anew since it was made")
	}
	if !node.Intact(ctx, c.Layout) {
		return r, errors.New("its namespaces or its cable are gone")
	}
	if !supervisor.Running(c.Layout) {
		alive, err := node.HasPods(c.Layout)
		if err != nil {
			return r, err
		}
		if !alive {
			return r, errors.New("all of its processes are gone")
		}
	}
	return r, nil
}

func sameParts(c *Cluster, setup parts.Setup) (bool, error) {
	now, err := parts.Encode(setup.All())
	if err != nil {
		return false, err
	}
	before, err := os.ReadFile(supervisor.PartsFile(c.Layout))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return bytes.Equal(now, before), err
}

// heal gets a cluster going that has lost some of its processes, or that was
// made from older sources. Pods keep running where they can.
func (c *Cluster) heal(ctx context.Context, setup parts.Setup, same bool) error {
	if supervisor.Running(c.Layout) && same {
		c.Progress.Say("the cluster is not ready or not up to date: waiting for it")
	} else {
		c.Progress.Say("starting the cluster's parts again; its data and pods stay")
		if err := node.Kill(ctx, c.Layout, node.Parts); err != nil {
			return err
		}
		if err := c.start(ctx, setup); err != nil {
			return err
		}
	}
	if err := c.Progress.Step("waiting for the API server", func() error { return c.waitAPI(ctx, healedWithin) }); err != nil {
		return err
	}
	if err := c.equip(ctx, setup); err != nil {
		return err
	}
	return c.Progress.Step("waiting for the cluster to be ready again", func() error { return c.waitReady(ctx, healedWithin) })
}

// start writes what parts read, and starts the supervisor.
func (c *Cluster) start(ctx context.Context, setup parts.Setup) error {
	if err := c.writeConfig(setup); err != nil {
		return err
	}
	if setup.CephFSID != "" {
		if err := c.Progress.Step("making Ceph's stores", func() error { return ceph.Ceph{Setup: setup}.Prepare(ctx) }); err != nil {
			return err
		}
	}
	return supervisor.Start(ctx, c.Layout, c.Layout.InState("bin", "devcluster"))
}

// equip loads the images and applies the objects that every cluster has.
func (c *Cluster) equip(ctx context.Context, setup parts.Setup) error {
	builder, err := c.Images()
	if err != nil {
		return err
	}
	if err := builder.Load(ctx, setup.Snapshotter, pauseImage, "coredns"); err != nil {
		return err
	}
	manifests, err := c.manifests(setup)
	if err != nil {
		return err
	}
	if err := c.equipCeph(ctx, setup); err != nil {
		return err
	}
	if err := c.Apply(ctx, manifests); err != nil {
		return err
	}
	// Last: it says that all of it is there.
	return os.WriteFile(c.equippedFile(), manifests, 0o644)
}

func (c *Cluster) equippedFile() string { return c.Layout.InState("config", "equipped.yaml") }

// equipped tells whether the cluster has what equip would give it.
func (c *Cluster) equipped(setup parts.Setup) bool {
	now, err := c.manifests(setup)
	before, errBefore := os.ReadFile(c.equippedFile())
	return err == nil && errBefore == nil && bytes.Equal(now, before)
}

func (c *Cluster) waitAPI(ctx context.Context, timeout time.Duration) error {
	api, err := c.API()
	if err != nil {
		return err
	}
	return kubeapi.Poll(ctx, timeout, func(ctx context.Context) error { return api.Get(ctx, "/readyz", nil) })
}

// waitReady waits until pods can be run and find each other by name.
func (c *Cluster) waitReady(ctx context.Context, timeout time.Duration) error {
	api, err := c.API()
	if err != nil {
		return err
	}
	err = kubeapi.Poll(ctx, timeout, func(ctx context.Context) error {
		if err := api.Get(ctx, "/readyz", nil); err != nil {
			return err
		}
		if dead := c.deadParts(); len(dead) > 0 {
			return fmt.Errorf("not running: %v", dead)
		}
		if err := api.NodeReady(ctx, parts.NodeName); err != nil {
			return err
		}
		if err := api.DeploymentReady(ctx, "kube-system", "coredns"); err != nil {
			return err
		}
		storage, err := c.Ceph()
		if errors.Is(err, ErrNoCeph) {
			return nil
		}
		if err := storage.Ready(ctx); err != nil {
			return fmt.Errorf("ceph: %w", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the cluster is not ready %w\nlogs are in %s", err, c.Layout.InState("log"))
	}
	return nil
}
