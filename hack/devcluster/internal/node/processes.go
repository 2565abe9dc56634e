package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// Mark is in the environment of every process that belongs to a cluster, with
// the state folder as its value: containerd hands it on to its shims.
const Mark = "AUTHSTACK_DEVCLUSTER"

// Process is one that belongs to the cluster.
type Process struct {
	PID  int
	Name string
	// Pod processes are found by their cgroup, the others by their environment.
	Pod bool
}

// Processes finds all processes of the cluster, no matter whose children they
// have become.
func Processes(l layout.Layout) ([]Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	mark := []byte(Mark + "=" + l.State)
	below := []byte(":/" + l.Name() + "/")
	var found []Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Any of these can fail because the process has just ended.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cgroups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		marked := false
		for _, variable := range bytes.Split(environ, []byte{0}) {
			marked = marked || bytes.Equal(variable, mark)
		}
		inPod := bytes.Contains(cgroups, below)
		if marked || inPod {
			if state(dir) == "Z" {
				continue
			}
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			found = append(found, Process{PID: pid, Name: strings.TrimSpace(string(name)), Pod: inPod && !marked})
		}
	}
	return found, nil
}

// state is the one letter after the program's name in /proc/PID/stat.
func state(dir string) string {
	data, _ := os.ReadFile(filepath.Join(dir, "stat"))
	if _, rest, found := strings.Cut(string(data), ") "); found && rest != "" {
		return rest[:1]
	}
	return ""
}

// Kill ends the chosen processes of the cluster, and waits until they are gone.
func Kill(ctx context.Context, l layout.Layout, choose func(Process) bool) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		all, err := Processes(l)
		if err != nil {
			return err
		}
		var left []string
		for _, p := range all {
			if choose(p) {
				_ = unix.Kill(p.PID, unix.SIGKILL)
				left = append(left, fmt.Sprintf("%s (%d)", p.Name, p.PID))
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("these processes do not end even when killed; most likely they wait for a disk: %s", strings.Join(left, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Everything chooses all processes.
func Everything(Process) bool { return true }

// Parts chooses what the supervisor starts, and not the pods: their shims keep
// running, and the next containerd finds them; so do the daemons that pods have
// Ceph's volumes from.
func Parts(p Process) bool { return !p.Pod && !isShim(p) && !hasVolume(p) }

// hasVolume knows qemu-storage-daemon, by the 15 bytes that the kernel keeps.
func hasVolume(p Process) bool { return p.Name == "qemu-storage-da" }

func isShim(p Process) bool { return strings.HasPrefix(p.Name, "containerd-shim") }

// HasPods tells whether any pod is still alive.
func HasPods(l layout.Layout) (bool, error) {
	all, err := Processes(l)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if isShim(p) {
			return true, nil
		}
	}
	return false, nil
}
