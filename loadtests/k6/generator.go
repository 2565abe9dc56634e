// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"authstack.dev/authstack/internal/result"
)

// evidence is the generator's own conduct: whether it had the CPU that it needed.
type evidence struct {
	start                 time.Time
	startCPU              int64
	startThrottle         *result.Throttle
	lastTick              time.Time
	lastCPU, busiestMicro int64
}

func newEvidence(start time.Time) *evidence {
	cpu, _ := usage()
	return &evidence{start: start, startCPU: cpu, startThrottle: readThrottle(), lastTick: start, lastCPU: cpu}
}

// startedAt is the start by the wall clock alone: its difference to the end then shows a clock that
// was set during the run.
func (e *evidence) startedAt() time.Time { return e.start.UTC().Round(0) }

// tick is called about once a second; it looks for the busiest one.
func (e *evidence) tick(now time.Time) {
	cpu, _ := usage()
	if passed := now.Sub(e.lastTick); passed > 0 {
		e.busiestMicro = max(e.busiestMicro, (cpu-e.lastCPU)*int64(time.Second)/int64(passed))
	}
	e.lastTick, e.lastCPU = now, cpu
}

func (e *evidence) finish(now time.Time) result.Generator {
	cpu, rss := usage()
	g := result.Generator{
		K6Version:        k6Version(),
		GoVersion:        runtime.Version(),
		GOMAXPROCS:       cores(),
		WallMicros:       now.Sub(e.start).Microseconds(),
		CPUMicros:        cpu - e.startCPU,
		BusiestCPUMicros: max(e.busiestMicro, 0),
		MaxRSSBytes:      rss,
	}
	if end := readThrottle(); end != nil && e.startThrottle != nil {
		g.Throttle = &result.Throttle{
			Periods:         end.Periods - e.startThrottle.Periods,
			Throttled:       end.Throttled - e.startThrottle.Throttled,
			ThrottledMicros: end.ThrottledMicros - e.startThrottle.ThrottledMicros,
		}
	}
	return g
}

// cores are those that the process could use. Its Pod may be allowed more threads (internal/latency/objects.go) than the node
// has processors, and a share of what is not there would hide that all of them were busy.
func cores() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// usage is the CPU time of this process in microseconds and its peak memory in bytes.
func usage() (cpu, rss int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	// Linux counts ru_maxrss in KiB.
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000, u.Maxrss * 1024
}

func k6Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if strings.HasPrefix(dep.Path, "go.k6.io/k6") {
			return dep.Version
		}
	}
	return "unknown"
}

// readThrottle reads cpu.stat of the process's cgroup, or nil where there is none or it does not
// count throttling (the root of a cgroup v2 hierarchy).
func readThrottle() *result.Throttle {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	for _, path := range cpuStatPaths(string(membership)) {
		if data, err := os.ReadFile(path); err == nil {
			if t := parseCPUStat(string(data)); t != nil {
				return t
			}
		}
	}
	return nil
}

// cpuStatPaths are where cpu.stat can be according to /proc/self/cgroup, the likeliest first. In a
// container the hierarchy that is mounted often begins at its own cgroup, so the path that the host
// knows it by does not exist there.
func cpuStatPaths(membership string) []string {
	var paths []string
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var mounts []string
		switch {
		case parts[0] == "0" && parts[1] == "":
			mounts = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		case hasController(parts[1], "cpu"):
			mounts = []string{"/sys/fs/cgroup/" + parts[1], "/sys/fs/cgroup/cpu"}
		}
		for _, mount := range mounts {
			paths = append(paths, mount+strings.TrimSuffix(parts[2], "/")+"/cpu.stat", mount+"/cpu.stat")
		}
	}
	return paths
}

func hasController(list, name string) bool {
	for controller := range strings.SplitSeq(list, ",") {
		if controller == name {
			return true
		}
	}
	return false
}

// parseCPUStat reads both forms: cgroup v1 counts throttled_time in nanoseconds, v2 throttled_usec.
func parseCPUStat(text string) *result.Throttle {
	var t result.Throttle
	found := false
	for line := range strings.Lines(text) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "nr_periods":
			t.Periods = value
		case "nr_throttled":
			t.Throttled, found = value, true
		case "throttled_usec":
			t.ThrottledMicros = value
		case "throttled_time":
			t.ThrottledMicros = value / 1000
		}
	}
	if !found {
		return nil
	}
	return &t
}
