// Package cluster brings a cluster up and takes it down.
package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/filelock"
	"authstack.dev/authstack/hack/devcluster/internal/gobuild"
	"authstack.dev/authstack/hack/devcluster/internal/images"
	"authstack.dev/authstack/hack/devcluster/internal/kubeapi"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/network"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/ui"
)

// KubernetesVersion is the one in kubernetes/go.mod.
const KubernetesVersion = "v1.36.3"

const pauseImage = "registry.k8s.io/pause:3.10"

// Cluster is one cluster, whether it exists or not.
type Cluster struct {
	Layout   layout.Layout
	Progress *ui.Progress
}

// record is what is remembered of a cluster that exists.
type record struct {
	Network network.Plan `json:"network"`
	// Boot is the boot of the machine that the cluster was made in: nothing but
	// files outlives a reboot.
	Boot string `json:"boot"`
	// Ceph is the identity of the cluster's Ceph; empty if it has none.
	Ceph string `json:"ceph,omitempty"`
}

func (c *Cluster) writeRecord(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(c.recordFile(), data, 0o644)
}

func (c *Cluster) recordFile() string { return c.Layout.InState("cluster.json") }

func (c *Cluster) readRecord() (record, error) {
	var r record
	data, err := os.ReadFile(c.recordFile())
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

func (c *Cluster) lock(ctx context.Context) (func(), error) {
	return filelock.Wait(ctx, c.Layout.InCache("locks", c.Layout.Name()+".lock"), func() {
		c.Progress.Say("another devcluster command is at work on this cluster: waiting for it")
	})
}

// Kubernetes builds the one executable that holds all of Kubernetes.
func (c *Cluster) Kubernetes(ctx context.Context) (string, error) {
	version := strings.Split(strings.TrimPrefix(KubernetesVersion, "v"), ".")
	const variable = " -X k8s.io/component-base/version."
	return gobuild.Cached(ctx, c.Layout, c.Progress, gobuild.Program{
		Name: "kubernetes", Module: c.Layout.InSource("kubernetes"),
		// Without it the API server says that it is v0.0.0, and clients believe it.
		LDFlags: strings.TrimSpace(variable + "gitVersion=" + KubernetesVersion + variable + "gitMajor=" + version[0] + variable + "gitMinor=" + version[1]),
		Hint:    "once per machine, 6 minutes on 2 cores",
	})
}

func (c *Cluster) storage(ctx context.Context) (string, error) {
	return gobuild.Cached(ctx, c.Layout, c.Progress, gobuild.Program{Name: "storage", Module: c.Layout.InSource("storage")})
}

// Images returns what makes and loads images for this cluster.
func (c *Cluster) Images() (*images.Builder, error) {
	catalog, err := images.ReadCatalog(c.Layout.InSource("images.yaml"))
	if err != nil {
		return nil, err
	}
	return &images.Builder{Layout: c.Layout, Progress: c.Progress, Catalog: catalog}, nil
}

// Load makes images and brings them into the node.
func (c *Cluster) Load(ctx context.Context, names ...string) error {
	if _, err := c.readRecord(); err != nil {
		return fmt.Errorf("there is no cluster to load images into: run `devcluster up` first")
	}
	builder, err := c.Images()
	if err != nil {
		return err
	}
	return builder.Load(ctx, snapshotter(c.Layout.State), names...)
}

// snapshotter is overlayfs wherever it works, which is not on top of another one.
func snapshotter(dir string) string {
	for !command.Exists(dir) {
		dir = filepath.Dir(dir)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}

// API returns a client for the cluster that exists.
func (c *Cluster) API() (*kubeapi.Client, error) {
	r, err := c.readRecord()
	if err != nil {
		return nil, fmt.Errorf("there is no cluster: run `devcluster up` first")
	}
	return kubeapi.New(c.Layout, parts.Setup{Network: r.Network}.Server())
}

// Kubectl runs kubectl as the administrator.
func (c *Cluster) Kubectl(ctx context.Context, input []byte, args ...string) (string, error) {
	// A home of its own in the state folder, where kubectl keeps its cache.
	return command.Run(ctx, append([]string{c.Layout.InState("bin", "kubectl"), "--kubeconfig", c.Layout.Kubeconfig()}, args...),
		command.Input(input), command.Env("HOME="+c.Layout.State))
}

// Apply applies manifests, given as YAML, by server-side apply.
func (c *Cluster) Apply(ctx context.Context, manifests []byte, args ...string) error {
	_, err := c.Kubectl(ctx, manifests, append([]string{"apply", "--server-side", "--force-conflicts", "--field-manager=devcluster", "-f", "-"}, args...)...)
	return err
}

// manifests returns those in the folder, as one document, filled in.
func (c *Cluster) manifests(setup parts.Setup) ([]byte, error) {
	files, err := filepath.Glob(c.Layout.InSource("manifests", "*.yaml"))
	if err != nil {
		return nil, err
	}
	if setup.CephFSID != "" {
		more, err := filepath.Glob(c.Layout.InSource("manifests", "ceph", "*.yaml"))
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	built := sha256.New()
	if err := gobuild.HashTree(built, c.Layout.InSource("coredns"), func(string) bool { return true }); err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("${DNS}", setup.Network.DNS().String(), "${COREDNS}", hex.EncodeToString(built.Sum(nil)[:8]))
	var all bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.WriteString(fill.Replace(string(data)))
	}
	return all.Bytes(), nil
}
