package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/network"
	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/pki"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
)

// create makes a cluster where nothing of one is left.
func (c *Cluster) create(ctx context.Context, setup parts.Setup, kubernetes, storage string, wait bool) error {
	// What an earlier one left, whatever it is and whoever made it.
	if err := node.Remove(ctx, c.Layout); err != nil {
		return err
	}
	used, err := network.Used(ctx)
	if err != nil {
		return err
	}
	if setup.Network, err = network.Choose(used); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "config", "config/cni", "log", "run", "pki", "volumes", "images", "pods", "etcd"} {
		mode := os.FileMode(0o755)
		if dir == "pki" || dir == "etcd" {
			mode = 0o700
		}
		if err := os.MkdirAll(c.Layout.InState(dir), mode); err != nil {
			return err
		}
	}
	if err := node.Create(ctx, c.Layout, setup.Network); err != nil {
		return err
	}
	if err := c.writeKeys(setup); err != nil {
		return err
	}
	if err := c.install(&setup, kubernetes, storage); err != nil {
		return err
	}
	if err := c.writeRecord(record{Network: setup.Network, Boot: bootID(), Ceph: setup.CephFSID}); err != nil {
		return err
	}
	if err := c.start(ctx, setup); err != nil {
		return err
	}
	if err := c.Progress.Step("waiting for the API server", func() error { return c.waitAPI(ctx, readyWithin) }); err != nil {
		return err
	}
	if err := c.equip(ctx, setup); err != nil {
		return err
	}
	if !wait {
		c.Progress.Say("the API server answers; the node may still take a while")
		return nil
	}
	if err := c.Progress.Step("waiting for the node and its DNS", func() error { return c.waitReady(ctx, readyWithin) }); err != nil {
		return err
	}
	c.Progress.Say("the cluster is ready: export KUBECONFIG=%s", c.Layout.Kubeconfig())
	return nil
}

func (c *Cluster) writeKeys(setup parts.Setup) error {
	dir := c.Layout.InState("pki")
	authority, err := pki.NewAuthority(dir, "ca")
	if err != nil {
		return err
	}
	if err := authority.WriteKey("ca"); err != nil {
		return err
	}
	for file, subject := range setup.Certificates() {
		if err := authority.Issue(file, subject); err != nil {
			return err
		}
	}
	// Not the same authority: whoever holds a certificate of this one may say
	// in whose name it asks.
	frontProxy, err := pki.NewAuthority(dir, "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := frontProxy.Issue("front-proxy", pki.Subject{Name: "front-proxy"}); err != nil {
		return err
	}
	if err := pki.SigningKey(dir, "service-account"); err != nil {
		return err
	}
	for _, user := range setup.Kubeconfigs() {
		if err := pki.Kubeconfig(c.Layout.InState("config", user+".kubeconfig"), dir, user, setup.Server(), "devcluster"); err != nil {
			return err
		}
	}
	return pki.Kubeconfig(c.Layout.Kubeconfig(), dir, "admin", setup.Server(), "devcluster")
}

func (c *Cluster) writeConfig(setup parts.Setup) error {
	for name, text := range setup.Files() {
		path := c.Layout.InState("config", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return parts.Write(supervisor.PartsFile(c.Layout), setup.All())
}

// install puts the executables where the cache can be emptied without harm to
// what runs, under names that tell their builds apart.
func (c *Cluster) install(setup *parts.Setup, kubernetes, storage string) error {
	place := func(path string) (string, error) {
		target := c.Layout.InState("bin", filepath.Base(filepath.Dir(path)))
		if command.Exists(target) {
			return target, nil
		}
		return target, linkOrCopy(path, target)
	}
	var err error
	if setup.Kubernetes, err = place(kubernetes); err != nil {
		return err
	}
	if setup.Storage, err = place(storage); err != nil {
		return err
	}
	kubectl := c.Layout.InState("bin", "kubectl")
	_ = os.Remove(kubectl)
	if err := os.Symlink(filepath.Base(setup.Kubernetes), kubectl); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return copyFile(self, c.Layout.InState("bin", "devcluster"))
}

func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return copyFile(from, to)
}

// copyFile puts a new file in the old one's place; a program that runs from the
// old one keeps it.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	part := to + ".part"
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(part, to)
}
