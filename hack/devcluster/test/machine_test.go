//go:build devcluster

package test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
	"authstack.dev/authstack/hack/devcluster/internal/node"
)

// machine is what a cluster could leave behind, as sets of lines.
type machine map[string][]string

// survey looks at the machine.
func survey(t *testing.T) machine {
	t.Helper()
	return machine{
		"mounts":             mounts(t),
		"links":              lines(t, "ip", "-o", "link", "show"),
		"routes":             lines(t, "ip", "-4", "route", "show", "table", "all"),
		"rules":              append(lines(t, "iptables-save"), lines(t, "iptables-legacy-save")...),
		"loop devices":       lines(t, "losetup", "--noheadings", "--output", "NAME,BACK-FILE"),
		"network namespaces": lines(t, "lsns", "--type", "net", "--noheadings", "--output", "NS"),
		"mount namespaces":   lines(t, "lsns", "--type", "mnt", "--noheadings", "--output", "NS"),
		"cgroups":            cgroups(t),
		"sysctls":            lines(t, "sysctl", "vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops", "net.ipv4.ip_forward"),
		"folders":            folders(),
	}
}

// left lists what is there now and was not before. Other clusters, which may
// run on the same machine, come and go as they like.
func (before machine) left(now machine, others []string) []string {
	var left []string
	for kind, found := range now {
		for _, line := range found {
			foreign := slices.ContainsFunc(others, func(other string) bool { return strings.Contains(line, other) }) ||
				kind == "cgroups" && slices.ContainsFunc(before[kind], func(parent string) bool { return withinOthers(parent, line) })
			if !slices.Contains(before[kind], line) && !foreign {
				left = append(left, kind+": "+line)
			}
		}
	}
	return left
}

func lines(t *testing.T, argv ...string) []string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err != nil {
		t.Logf("%v: %v", argv, err)
	}
	var kept []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ":") {
			continue // iptables-save: times and counters
		}
		kept = append(kept, line)
	}
	return kept
}

func mounts(t *testing.T) []string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			found = append(found, fields[4])
		}
	}
	return found
}

func cgroups(t *testing.T) []string {
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// withinOthers is whether a cgroup is below one, other than a hierarchy's root, that was there before the cluster: the
// machine's sessions and services make theirs at any time, and a cluster makes none there.
func withinOthers(parent, cgroup string) bool {
	rest, below := strings.CutPrefix(parent, "/sys/fs/cgroup/")
	_, controllers := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	depth := strings.Count(rest, "/")
	if controllers != nil { // version 1: the first folder is the hierarchy's
		depth--
	}
	return below && depth >= 0 && strings.HasPrefix(cgroup, parent+"/")
}

// folders are those that programs of a node like to make.
func folders() []string {
	var found []string
	for _, path := range []string{
		"/run/netns", "/run/containerd", "/run/kubernetes", "/run/xtables.lock", "/run/flannel",
		"/var/lib/kubelet", "/var/lib/cni", "/var/lib/etcd", "/var/log/pods", "/var/log/containers",
		"/etc/ceph/ceph.conf", "/var/lib/ceph/mon/ceph-a", "/var/lib/ceph/osd/ceph-0", "/var/log/ceph/ceph.log", "/run/ceph/ceph-osd.0.asok",
		"/etc/cni/net.d", "/etc/kubernetes", "/usr/libexec/kubernetes", "/opt/cni", "/opt/containerd",
	} {
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	return found
}

// processes of the cluster in the state folder.
func processes(t *testing.T, l layout.Layout) []node.Process {
	t.Helper()
	found, err := node.Processes(l)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// patience bounds what is broken; a busy machine may stand still for a while.
const patience = 3 * time.Minute

func eventually(t *testing.T, what string, within time.Duration, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// tool runs the command under test.
type tool struct {
	t     *testing.T
	state string
}

func (d tool) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../devcluster", args...)
	cmd.Env = append(os.Environ(), layout.StateVariable+"="+d.state)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("devcluster %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

func (d tool) run(args ...string) string {
	d.t.Helper()
	began := time.Now()
	out, err := d.try(args...)
	if err != nil {
		d.t.Fatal(err)
	}
	if args[0] != "kubectl" {
		d.t.Logf("devcluster %s: %.1fs", strings.Join(args, " "), time.Since(began).Seconds())
	}
	return out
}

func (d tool) apply(manifest string) {
	d.t.Helper()
	// Not the test's own folder: its name has a comma, which kubectl takes for two files.
	dir, err := os.MkdirTemp("", "devcluster-test")
	if err != nil {
		d.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.run("kubectl", "apply", "-f", file)
}
