// Package node makes and removes the surroundings that the node's programs run
// in: a network and a mount namespace, the cable to the host, cgroups.
//
// The namespaces are held by files in the state folder and not by a process:
// they outlive any program of the node, and are gone as soon as those files are
// unmounted and the last program has ended.
package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/network"
)

// uplink is the node's end of the cable.
const uplink = "eth0"

func netFile(l layout.Layout) string   { return l.InState("ns", "net") }
func mountFile(l layout.Layout) string { return l.InState("ns", "mnt") }

// Enter returns a command line that runs the given one on the node. It is not
// `ip netns exec`, which remounts /sys, and then the kubelet finds no cgroups.
func Enter(l layout.Layout, argv ...string) []string {
	return append([]string{"nsenter", "--net=" + netFile(l), "--mount=" + mountFile(l), "--"}, argv...)
}

// EnterMounts is Enter with the network of the host.
func EnterMounts(l layout.Layout, argv ...string) []string {
	return append([]string{"nsenter", "--mount=" + mountFile(l), "--"}, argv...)
}

// Intact tells whether the namespaces and the cable are there.
func Intact(ctx context.Context, l layout.Layout) bool {
	return command.Do(ctx, Enter(l, "ip", "link", "show", uplink)...) == nil &&
		command.Do(ctx, "ip", "link", "show", l.Link()) == nil
}

// Create makes the surroundings.
func Create(ctx context.Context, l layout.Layout, plan network.Plan) error {
	if err := saveSysctls(l); err != nil {
		return err
	}
	if err := makeCgroups(l); err != nil {
		return err
	}
	countWrites(l)
	if err := makeNamespaces(ctx, l); err != nil {
		return fmt.Errorf("making the node's namespaces: %w", err)
	}
	if err := connect(ctx, l, plan); err != nil {
		return fmt.Errorf("connecting the node: %w", err)
	}
	return nil
}

func makeNamespaces(ctx context.Context, l layout.Layout) error {
	dir := l.InState("ns")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, path := range []string{netFile(l), mountFile(l)} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	for _, path := range fixed {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	// The file that holds a mount namespace must lie on a mount that is not
	// shared with it.
	script := `set -e
mount --bind "$1" "$1"
mount --make-private "$1"
unshare --net="$2" --mount="$3" true`
	if err := command.Do(ctx, "sh", "-c", script, "sh", dir, netFile(l), mountFile(l)); err != nil {
		return err
	}
	// Everything that programs of the node would leave in common folders goes
	// to memory that vanishes with the namespace: sockets and network
	// namespaces in /run, links to logs, what lies in fixed folders. The link
	// is for the kubelet's metrics: it looks for containerd where it usually is,
	// and without it knows pods only and no containers.
	inside := `set -e
mount --make-rshared /
mount -t tmpfs -o mode=755 devcluster /run
mkdir -p /run/lock /run/netns /run/containerd
ln -s ` + l.Socket() + ` /run/containerd/containerd.sock
mount -t tmpfs -o mode=755 devcluster /var/log
mkdir -p /var/log/containers
for folder in ` + strings.Join(fixed, " ") + `; do mount -t tmpfs -o mode=755 devcluster $folder; done`
	return command.Do(ctx, Enter(l, "sh", "-c", inside)...)
}

// fixed are folders that no option moves: the notes of the library that containerd uses for network plugins, and the
// socket on which a kubelet waits for plugins of devices, which another kubelet of the machine may have.
var fixed = []string{"/var/lib/cni", "/var/lib/kubelet"}

func connect(ctx context.Context, l layout.Layout, plan network.Plan) error {
	bits := fmt.Sprintf("/%d", plan.Cable.Bits())
	host, node := plan.Host().String(), plan.Node().String()
	steps := [][]string{
		{"ip", "link", "add", l.Link(), "type", "veth", "peer", "name", uplink, "netns", netFile(l)},
		{"ip", "address", "add", host + bits, "dev", l.Link()},
		{"ip", "link", "set", l.Link(), "up"},
		Enter(l, "ip", "link", "set", "lo", "up"),
		Enter(l, "ip", "address", "add", node+bits, "dev", uplink),
		Enter(l, "ip", "link", "set", uplink, "up"),
		Enter(l, "ip", "route", "add", "default", "via", host),
		Enter(l, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
		// These two let programs of the host reach pods and Services, and keep
		// what is meant for them from leaving by the default route.
		{"ip", "route", "add", plan.Pods.String(), "via", node, "dev", l.Link()},
		{"ip", "route", "add", plan.Services.String(), "via", node, "dev", l.Link()},
		// Pods reach each other and the host's end of the cable and nothing
		// else: a load test that goes astray ends here, at once and not in a timeout.
		Enter(l, "iptables", "-A", "FORWARD", "-o", uplink, "!", "-d", host, "-j", "REJECT"),
	}
	for _, step := range steps {
		if err := command.Do(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes away all processes and surroundings of the cluster, whatever of
// them there is.
func Remove(ctx context.Context, l layout.Layout) error {
	if err := Kill(ctx, l, Everything); err != nil {
		return err
	}
	if command.Exists("/sys/class/net/" + l.Link()) {
		// Takes the routes with it, and the node's end.
		if err := command.Do(ctx, "ip", "link", "delete", l.Link()); err != nil {
			return err
		}
	}
	if err := unmountBelow(ctx, l.State); err != nil {
		return err
	}
	if err := removeCgroups(ctx, l); err != nil {
		return err
	}
	if err := restoreSysctls(l); err != nil {
		return err
	}
	// The nodes of other clusters mount something on them, and lose it with the folder.
	if others, _ := filepath.Glob("/sys/class/net/" + layout.LinkPrefix + "*"); len(others) == 0 {
		for _, path := range fixed {
			_ = os.Remove(path) // if it is empty, as when we made it
		}
	}
	if err := os.RemoveAll(l.State); err != nil {
		return fmt.Errorf("removing the state folder: %w", err)
	}
	if l.State == layout.DefaultState {
		_ = os.Remove(filepath.Dir(l.State)) // if no other cluster has its state in it
	}
	return nil
}

// unmountBelow unmounts what the host has mounted in the folder, last first.
func unmountBelow(ctx context.Context, dir string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	mounts := mountsBelow(string(data), dir)
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := command.Do(ctx, "umount", "--lazy", mounts[i]); err != nil {
			return err
		}
	}
	return nil
}

func mountsBelow(mountinfo, dir string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		path := unescape.Replace(fields[4])
		if path == dir || strings.HasPrefix(path, dir+"/") {
			found = append(found, path)
		}
	}
	return found
}

// unescape undoes what mountinfo does to blanks in paths.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
