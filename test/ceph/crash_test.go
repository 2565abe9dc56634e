//go:build ceph

package ceph

import (
	"os"
	"strconv"
	"testing"
	"time"

	"authstack.dev/authstack/api/v1alpha1"
)

const (
	// people is how many clients load each database.
	people = 4
	// window is what a crash may take under Relaxed but for the WAL writer's flushes: three times wal_writer_delay, which is 200 ms.
	window = 3 * 200 * time.Millisecond
	// slack is for three flushes and for two cores that run three OSDs and three stacks: the WAL writer, and the kill, come late.
	slack = 2 * time.Second
)

// rounds of the crash: few by default, CEPH_ROUNDS for more.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CEPH_ROUNDS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CEPH_ROUNDS is %q: write a number from 1", text)
	}
	return n
}

// TestStacks has a stack of each durability, made Ready by the operator, so that its own triggers are in force.
func TestStacks(t *testing.T) {
	stacks := makeStacks(t, v1alpha1.DurabilityStrict, v1alpha1.DurabilityIdentity, v1alpha1.DurabilityRelaxed)
	for sentence, test := range map[string]func(*testing.T, []*stack){
		"a crash of the database and all OSDs takes nothing that was acknowledged": crash,
		"with one OSD stopped people log in, with two it is said that storage hangs": func(t *testing.T, stacks []*stack) {
			stopOSDs(t, stacks[1])
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for _, s := range stacks {
				s.begin(t)
			}
			test(t, stacks)
		})
	}
}

// PostgreSQL, the processes that attach its volumes, and all OSDs are killed at once, in the middle of a load or right after
// everybody's last commit.
func crash(t *testing.T, stacks []*stack) {
	count := rounds(t)
	for round := range count {
		for _, s := range stacks {
			s.start(round)
		}
		time.Sleep(3 * time.Second)
		if round == 0 {
			for _, s := range stacks {
				s.everyKind(t)
			}
		}
		if round%2 == 0 {
			for _, s := range stacks {
				s.crowd.Stop()
			}
		}
		for _, s := range stacks {
			s.crowd.Crashing()
			s.killed = time.Now()
			s.killDatabase()
			s.cutVolume()
		}
		order(t, "kill")
		for _, s := range stacks {
			if err := s.crowd.Wait(); err != nil {
				t.Errorf("%s: %v", s.name, err)
			}
		}
		order(t, "start")
		for _, s := range stacks {
			s.deletePods()
		}
		for _, s := range stacks {
			s.newPod()
			s.check()
			if s.durability != v1alpha1.DurabilityRelaxed && s.broken.Identity() > 0 {
				t.Fatalf("crash %d took under %s what was acknowledged: %+v", round+1, s.durability, s.broken)
			}
			s.logsIn()
			t.Logf("crash %d of %d, %s", round+1, count, s)
		}
	}
	for _, s := range stacks {
		if commits, all := s.ledger.Acknowledged(); s.durability != v1alpha1.DurabilityRelaxed && (commits < count*people || !all) {
			t.Errorf("%s: the load did too little: %d commits", s.name, commits)
		}
		if s.durability == v1alpha1.DurabilityStrict && s.broken.Sessions > 0 {
			t.Errorf("%d sessions are missing under Strict", s.broken.Sessions)
		}
		if s.worst > window+slack {
			t.Errorf("%s: a commit was lost that was acknowledged %s before the crash", s.name, s.worst)
		}
		// The operator finds everything in force, triggers included.
		kube.WaitReady(t, namespace, s.name)
		s.look()
	}
}
