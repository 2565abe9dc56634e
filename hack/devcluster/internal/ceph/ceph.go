// Package ceph makes a cluster's Ceph, asks it how it is, and does to it what
// disks and networks do to one: OSDs that are gone, and OSDs that are slow.
//
// Its programs are parts like all others, run by the supervisor; what they keep
// is in the folder ceph of the state folder.
package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"authstack.dev/authstack/hack/devcluster/internal/command"
	"authstack.dev/authstack/hack/devcluster/internal/kubeapi"
	"authstack.dev/authstack/hack/devcluster/internal/parts"
)

// Ceph is the one of a cluster.
type Ceph struct{ Setup parts.Setup }

func (c Ceph) path(names ...string) string {
	return c.Setup.Layout.InState(append([]string{"ceph"}, names...)...)
}

func (c Ceph) storeDir(osd int) string { return c.path("osd." + strconv.Itoa(osd)) }

// Prepare makes the stores of the monitor and the OSDs, unless they are there.
// The OSDs are held until Register has told the monitor of them.
func (c Ceph) Prepare(ctx context.Context) error {
	done := c.path("prepared")
	if command.Exists(done) {
		return nil
	}
	if err := os.RemoveAll(c.path()); err != nil {
		return err
	}
	dirs := []string{c.path("run"), c.path("log"), c.path("crash"), c.path("mon"), c.path("mgr")}
	for n := range parts.OSDs {
		dirs = append(dirs, c.storeDir(n))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	address, conf := c.Setup.CephAddress().String(), c.Setup.CephConf()
	for _, argv := range [][]string{
		{"monmaptool", "--create", "--clobber", "--fsid", c.Setup.CephFSID, "--addv", "a", "[v2:" + address + ":3300,v1:" + address + ":6789]", c.path("monmap")},
		{"ceph-mon", "--mkfs", "--conf", conf, "--id", "a", "--monmap", c.path("monmap"), "--no-mon-config"},
	} {
		if err := command.Do(ctx, argv...); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	failed := make([]error, parts.OSDs)
	for n := range parts.OSDs {
		all.Go(func() {
			failed[n] = command.Do(ctx, "ceph-osd", "--mkfs", "--conf", conf, "--id", strconv.Itoa(n), "--no-mon-config")
		})
	}
	all.Wait()
	for n, err := range failed {
		if err != nil {
			return err
		}
		if err := c.hold(n); err != nil {
			return err
		}
	}
	return os.WriteFile(done, nil, 0o644)
}

// Register tells a new monitor of its OSDs, and makes the pool.
func (c Ceph) Register(ctx context.Context) error {
	done := c.path("registered")
	if command.Exists(done) {
		return nil
	}
	var commands []string
	for n := range parts.OSDs {
		id, err := os.ReadFile(filepath.Join(c.storeDir(n), "fsid"))
		if err != nil {
			return err
		}
		commands = append(commands, fmt.Sprintf("osd new %s %d", strings.TrimSpace(string(id)), n))
	}
	commands = append(commands, "osd pool create "+parts.CephPool, "osd pool application enable "+parts.CephPool+" rbd")
	// The monitor was started seconds ago. Told the same again, it does nothing.
	err := kubeapi.Poll(ctx, backWithin, func(ctx context.Context) error {
		if err := c.tell(ctx, commands...); err != nil {
			return err
		}
		// Told many things at once, ceph does not say that one of them failed.
		pools, err := command.Run(ctx, c.argv("osd", "pool", "ls"))
		if err == nil && !strings.Contains(pools, parts.CephPool) {
			err = fmt.Errorf("the pool %s was not made: see %s", parts.CephPool, c.path("log"))
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(done, nil, 0o644)
}

// writable is how many replicas there have to be for a write: min_size in ceph.conf.
const writable = 2

// argv is the command line of a question to the monitor.
func (c Ceph) argv(args ...string) []string {
	return append([]string{"ceph", "--conf", c.Setup.CephConf(), "--connect-timeout", "20"}, args...)
}

// tell gives the monitor commands in one go: ceph is written in Python and takes
// half a second to start.
func (c Ceph) tell(ctx context.Context, commands ...string) error {
	_, err := command.Run(ctx, c.argv(), command.Input([]byte(strings.Join(commands, "\n")+"\n")))
	return err
}

// State is what Ceph says about itself.
type State struct {
	Health struct {
		Status string `json:"status"`
		Checks map[string]struct {
			Summary struct {
				Message string `json:"message"`
			} `json:"summary"`
		} `json:"checks"`
	} `json:"health"`
	OSDs struct {
		Epoch int `json:"epoch"`
		Up    int `json:"num_up_osds"`
	} `json:"osdmap"`
	PGs struct {
		All    int `json:"num_pgs"`
		States []struct {
			Name  string `json:"state_name"`
			Count int    `json:"count"`
		} `json:"pgs_by_state"`
		Used  int64 `json:"bytes_used"`
		Total int64 `json:"bytes_total"`
	} `json:"pgmap"`
}

// State asks the monitor.
func (c Ceph) State(ctx context.Context) (State, error) {
	var s State
	out, err := command.Run(ctx, c.argv("status", "--format", "json"))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(out), &s)
}

// Ready returns nil if all of the OSDs that should run do, and their data can be
// written.
func (c Ceph) Ready(ctx context.Context) error {
	s, err := c.State(ctx)
	if err != nil {
		return err
	}
	return s.ready(parts.OSDs - len(c.Held()))
}

func (s State) ready(osds int) error {
	if s.OSDs.Up < osds {
		return fmt.Errorf("%d of %d OSDs are up", s.OSDs.Up, osds)
	}
	if osds < writable {
		return nil // and as they are meant to be, for nothing can be written
	}
	active := 0
	for _, state := range s.PGs.States {
		if strings.HasPrefix(state.Name, "active") {
			active += state.Count
		}
	}
	if s.PGs.All == 0 || active < s.PGs.All {
		return fmt.Errorf("%d of %d placement groups are active", active, s.PGs.All)
	}
	return nil
}
