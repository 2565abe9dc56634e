package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/layout"
)

// hierarchies returns where cgroups are mounted: once for version 2, once per
// controller for version 1, and both on machines that mix them.
func hierarchies() ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseHierarchies(string(data)), nil
}

func parseHierarchies(mountinfo string) []string {
	var found []string
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if ok && len(fields) > 4 && len(types) > 0 && (types[0] == "cgroup" || types[0] == "cgroup2") && !slices.Contains(found, fields[4]) {
			found = append(found, fields[4])
		}
	}
	return found
}

// makeCgroups makes the cluster's own cgroup in every hierarchy; the kubelet
// insists that its root is there.
func makeCgroups(l layout.Layout) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		return errors.New("no cgroups are mounted on this machine, and containers need them")
	}
	for _, root := range roots {
		if err := os.MkdirAll(filepath.Join(root, l.Name()), 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		// Version 2 hands controllers down only if told; version 1 has no such file.
		available, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil {
			continue
		}
		for _, dir := range []string{root, filepath.Join(root, l.Name())} {
			for _, controller := range strings.Fields(string(available)) {
				// One that is in use by version 1, or cannot be handed down, is
				// reported by the kubelet if it is needed.
				_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
			}
		}
	}
	return nil
}

// countWrites has the kernel count each container's writes to the disk of the state folder, for the kubelet's
// container_fs_writes_total. Version 2 of cgroups counts by itself. Version 1 counts from the first time on that a
// limit of a disk was written, be it 0, which is none (seen on Linux 6.18); it does so until the machine is
// restarted, and limits nothing. A disk that cannot be counted is no reason to have no cluster.
func countWrites(l layout.Layout) {
	roots, _ := hierarchies()
	for _, root := range roots {
		limit := filepath.Join(root, l.Name(), "blkio.throttle.write_iops_device")
		if disk := diskOf(l.State); disk != "" && command.Exists(limit) {
			_ = os.WriteFile(limit, []byte(disk+" 0"), 0o200)
		}
	}
}

// diskOf is the whole disk, as major:minor, on which a folder lies; empty for one that lies on none, as in memory.
func diskOf(dir string) string {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return ""
	}
	device := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	if command.Exists(device + "/partition") {
		device += "/.." // of the folder behind the link
	}
	number, _ := os.ReadFile(device + "/dev")
	return strings.TrimSpace(string(number))
}

// removeCgroups removes them with all below, once their processes are gone.
func removeCgroups(ctx context.Context, l layout.Layout) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := removeCgroup(ctx, filepath.Join(root, l.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeCgroup(ctx context.Context, dir string) error {
	// A cgroup stays busy for moments after its last process.
	deadline := time.Now().Add(10 * time.Second)
	for {
		var dirs []string
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		if err != nil {
			return err
		}
		slices.Reverse(dirs) // children first
		var failed error
		for _, path := range dirs {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
		}
		if failed == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("removing cgroups: %w", failed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
