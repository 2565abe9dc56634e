package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/kubeapi"
	"authstack.dev/authstack/hack/devcluster/internal/node"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
	"authstack.dev/authstack/hack/devcluster/internal/supervisor"
)

// backWithin is how long a started OSD may take to serve again; it takes about
// five seconds, more after a crash under load.
const backWithin = 2 * time.Minute

// ParseOSD reads the number of an OSD.
func ParseOSD(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= parts.OSDs {
		return 0, fmt.Errorf("there is no OSD %q: the OSDs are 0 to %d", text, parts.OSDs-1)
	}
	return n, nil
}

// ParseDelay reads a number of milliseconds, or off.
func ParseDelay(text string) (time.Duration, error) {
	if text == "off" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 10000 {
		return 0, fmt.Errorf("%q is no delay: write a number of milliseconds from 1 to 10000, or off", text)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// AllOSDs lists the numbers of all OSDs.
func AllOSDs() []int {
	var all []int
	for n := range parts.OSDs {
		all = append(all, n)
	}
	return all
}

func (c Ceph) holdFile(osd int) string { return c.Setup.HoldFile(parts.OSDName(osd)) }

func (c Ceph) hold(osd int) error { return os.WriteFile(c.holdFile(osd), nil, 0o644) }

// Held lists the OSDs that are stopped on order.
func (c Ceph) Held() []int {
	var held []int
	for _, n := range AllOSDs() {
		if command.Exists(c.holdFile(n)) {
			held = append(held, n)
		}
	}
	return held
}

// Stop stops OSDs, and tells the monitor, until they are started again.
func (c Ceph) Stop(ctx context.Context, osds ...int) error {
	if err := c.end(ctx, unix.SIGTERM, osds); err != nil {
		return err
	}
	var commands []string
	for _, n := range osds {
		commands = append(commands, fmt.Sprintf("osd down %d", n))
	}
	return c.tell(ctx, commands...)
}

// Kill ends OSDs as a power cut does, and tells nobody.
func (c Ceph) Kill(ctx context.Context, osds ...int) error { return c.end(ctx, unix.SIGKILL, osds) }

func (c Ceph) end(ctx context.Context, signal unix.Signal, osds []int) error {
	// All are held before the first is ended, and all are ended before the first
	// is waited for: one that sees others go may still write.
	for _, n := range osds {
		if err := c.hold(n); err != nil {
			return err
		}
	}
	first, err := c.running()
	if err != nil {
		return err
	}
	for _, n := range osds {
		if first[n] != 0 {
			_ = unix.Kill(first[n], signal)
		}
	}
	return kubeapi.Poll(ctx, 30*time.Second, func(context.Context) error {
		now, err := c.running()
		if err != nil {
			return err
		}
		for _, n := range osds {
			if now[n] == 0 {
				continue
			}
			if now[n] != first[n] {
				_ = unix.Kill(now[n], signal) // the supervisor was about to start it
			}
			return fmt.Errorf("OSD %d does not end", n)
		}
		return nil
	})
}

// running returns the processes of the OSDs that run, by number.
func (c Ceph) running() (map[int]int, error) {
	alive, err := node.Processes(c.Setup.Layout)
	if err != nil {
		return nil, err
	}
	pids := map[int]int{}
	for _, n := range AllOSDs() {
		if pid, ok := supervisor.PID(c.Setup.Layout, parts.OSDName(n), alive); ok {
			pids[n] = pid
		}
	}
	return pids, nil
}

// Release lets the supervisor start OSDs.
func (c Ceph) Release(osds ...int) error {
	for _, n := range osds {
		if err := os.Remove(c.holdFile(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Start starts the OSDs that do not run, and waits until Ceph can be written to,
// or has as many as it is to have.
func (c Ceph) Start(ctx context.Context, osds ...int) error {
	running, err := c.running()
	if err != nil {
		return err
	}
	before, err := c.State(ctx)
	if err != nil {
		return err
	}
	if err := c.Release(osds...); err != nil {
		return err
	}
	osds = slices.DeleteFunc(slices.Clone(osds), func(n int) bool { return running[n] != 0 })
	return c.waitBack(ctx, before.OSDs.Epoch, osds...)
}

// waitBack waits until these OSDs have come up since the given epoch of Ceph's
// map. That they are up is not enough: nobody may have noticed that they were not.
func (c Ceph) waitBack(ctx context.Context, since int, osds ...int) error {
	return kubeapi.Poll(ctx, backWithin, func(ctx context.Context) error {
		out, err := command.Run(ctx, c.argv("osd", "dump", "--format", "json"))
		if err != nil {
			return err
		}
		var dump struct {
			OSDs []struct {
				Number int `json:"osd"`
				Up     int `json:"up"`
				UpFrom int `json:"up_from"`
			} `json:"osds"`
		}
		if err := json.Unmarshal([]byte(out), &dump); err != nil {
			return err
		}
		for _, osd := range dump.OSDs {
			if slices.Contains(osds, osd.Number) && (osd.Up == 0 || osd.UpFrom <= since) {
				return fmt.Errorf("OSD %d is not back: see %s", osd.Number, c.path("log"))
			}
		}
		return c.Ready(ctx)
	})
}

// Slow makes every message from these OSDs to others wait for a random time of
// up to the given, which each write's replication has to; 0 ends that. It stays
// when an OSD is started again.
func (c Ceph) Slow(ctx context.Context, delay time.Duration, osds ...int) error {
	for _, n := range osds {
		var commands []string
		if delay > 0 {
			commands = []string{
				fmt.Sprintf("config set osd.%d ms_inject_delay_type osd", n),
				fmt.Sprintf("config set osd.%d ms_inject_delay_max %.4f", n, delay.Seconds()),
				fmt.Sprintf("config set osd.%d ms_inject_delay_probability 1", n),
			}
		} else {
			for _, option := range []string{"type", "max", "probability"} {
				commands = append(commands, fmt.Sprintf("config rm osd.%d ms_inject_delay_%s", n, option))
			}
		}
		// An OSD reads this when it connects to another. One that is said to be
		// down connects anew; one at a time, for if all are down at once, nobody
		// is left who tells them.
		if command.Exists(c.holdFile(n)) {
			if err := c.tell(ctx, commands...); err != nil {
				return err
			}
			continue
		}
		before, err := c.State(ctx)
		if err != nil {
			return err
		}
		if err := c.tell(ctx, append(commands, fmt.Sprintf("osd down %d", n))...); err != nil {
			return err
		}
		if err := c.waitBack(ctx, before.OSDs.Epoch, n); err != nil {
			return err
		}
	}
	return nil
}

// Delays tells what Slow has set, by OSD.
func (c Ceph) Delays(ctx context.Context) (map[int]time.Duration, error) {
	out, err := command.Run(ctx, c.argv("config", "dump", "--format", "json"))
	if err != nil {
		return nil, err
	}
	return delays([]byte(out))
}

func delays(configuration []byte) (map[int]time.Duration, error) {
	var options []struct {
		Section string `json:"section"`
		Name    string `json:"name"`
		Value   string `json:"value"`
	}
	if err := json.Unmarshal(configuration, &options); err != nil {
		return nil, err
	}
	found := map[int]time.Duration{}
	for _, option := range options {
		var n int
		if _, err := fmt.Sscanf(option.Section, "osd.%d", &n); err != nil || option.Name != "ms_inject_delay_max" {
			continue
		}
		seconds, err := strconv.ParseFloat(option.Value, 64)
		if err != nil {
			return nil, err
		}
		found[n] = time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
	}
	return found, nil
}
