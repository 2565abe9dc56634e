package durability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/test/durability/load"
)

// people is how many clients load the database at once, and rounds how often it is killed under each level.
const (
	people = 6
	rounds = 20
)

// crash kills the server as a power failure does: whatever the WAL holds beyond what was flushed is gone as well, which
// kill -9 by itself leaves to the operating system. Every process is stopped but one, which says how far that is.
func (c *cluster) crash(monitor *pgx.Conn) {
	c.t.Helper()
	type end struct {
		file   string
		offset int64
		err    error
	}
	flushed, asked := end{}, false
	for try := 0; !asked; try++ {
		c.signal(syscall.SIGSTOP, monitor)
		answer := make(chan end, 1)
		go func() {
			var e end
			e.err = monitor.QueryRow(context.Background(), `SELECT file_name, file_offset FROM pg_walfile_name_offset(pg_current_wal_flush_lsn())`).Scan(&e.file, &e.offset)
			answer <- e
		}()
		select {
		case flushed = <-answer:
			asked = true
		case <-time.After(2 * time.Second):
			// One was stopped while it held a lock that the question needs. They go on, and what is said then is of no use.
			if try == 20 {
				c.t.Fatal("PostgreSQL does not say what is flushed, whenever it is stopped")
			}
			c.signal(syscall.SIGCONT, monitor)
			if e := <-answer; e.err != nil {
				c.t.Fatal(e.err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	if flushed.err != nil {
		c.t.Fatal(flushed.err)
	}
	file, offset := flushed.file, flushed.offset
	c.kill()
	segments, err := filepath.Glob(filepath.Join(c.data, "pg_wal", strings.Repeat("[0-9A-F]", 24)))
	if err != nil {
		c.t.Fatal(err)
	}
	sort.Strings(segments)
	for _, segment := range segments {
		keep := offset
		if name := filepath.Base(segment); name < file {
			continue
		} else if name > file {
			keep = 0
		}
		for _, size := range []int64{keep, 1 << 20} {
			if err := os.Truncate(segment, size); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

// signal every process but that of the given connection.
func (c *cluster) signal(number syscall.Signal, but *pgx.Conn) {
	c.t.Helper()
	for _, pid := range c.pids(int(but.PgConn().PID())) {
		// One that has ended since the list was made holds nothing any more.
		if err := syscall.Kill(pid, number); err != nil && err != syscall.ESRCH {
			c.t.Fatal(err)
		}
	}
}

// trial is a level of durability with what its crashes may take.
type trial struct {
	*cluster
	level string
	// lasts is how long each round's load does.
	lasts time.Duration
	// people are the ids of those who make it.
	people []int
}

func newTrial(t *testing.T, level string, lasts time.Duration, options ...string) *trial {
	c := newCluster(t, options...)
	c.schema()
	admin := c.connect(c.superuser)
	defer func() { _ = admin.Close(context.Background()) }()
	execute(t, admin, tenant)
	switch level {
	case "IdentityDurable":
		c.install()
	case "Relaxed":
		execute(t, admin, `ALTER ROLE authentik IN DATABASE authentik SET synchronous_commit TO off`)
	}
	ids, err := load.MakePeople(context.Background(), admin, people)
	if err != nil {
		t.Fatal(err)
	}
	return &trial{c, level, lasts, ids}
}

// round loads the database, crashes it in the middle of the load or right after everybody's last commit, and says what is
// missing and how long before the crash the oldest of it was acknowledged.
func (t *trial) round(ledger *load.Ledger, run int) (load.Broken, time.Duration) {
	t.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	monitor := t.connect(t.superuser)
	defer func() { _ = monitor.Close(ctx) }()
	var conns []*pgx.Conn
	for range t.people {
		conns = append(conns, t.connect(t.owner))
	}
	crowd := load.Start(ctx, ledger, run, t.people, conns)
	time.Sleep(t.lasts)
	if run%2 == 0 {
		crowd.Stop()
	}
	crashed := time.Now()
	crowd.Crashing()
	t.crash(monitor)
	if err := crowd.Wait(); err != nil {
		t.t.Error(err)
	}
	t.start()
	conn := t.connect(t.superuser)
	defer func() { _ = conn.Close(ctx) }()
	found, err := ledger.Check(ctx, conn)
	if err != nil {
		t.t.Fatal(err)
	}
	if found.Oldest.IsZero() {
		return found, 0
	}
	return found, crashed.Sub(found.Oldest)
}

func TestCrashesTakeNothingThatWasAcknowledged(t *testing.T) {
	for _, level := range []string{"Strict", "IdentityDurable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			trial, ledger := newTrial(t, level, 200*time.Millisecond), load.NewLedger()
			sessions := 0
			for run := range rounds {
				found, _ := trial.round(ledger, run)
				if found.Identity() > 0 {
					t.Fatalf("crash %d took what was acknowledged: %+v", run, found)
				}
				sessions += found.Sessions
				ledger.Counted()
			}
			if level == "Strict" && sessions > 0 {
				t.Errorf("%d sessions are missing under Strict", sessions)
			}
			commits, all := ledger.Acknowledged()
			t.Logf("%s: %d crashes, %d acknowledged commits, none of an identity, credential, token, logout, revocation or task missing; %d sessions", level, rounds, commits, sessions)
			if commits < rounds*people || !all {
				t.Errorf("the load did too little: %d commits", commits)
			}
		})
	}
}

// Under Relaxed a crash does take some, and none that is older than the promised three rounds of the WAL writer.
func TestRelaxedLosesWhatItSays(t *testing.T) {
	const delay = time.Second
	trial := newTrial(t, "Relaxed", 4500*time.Millisecond, "-c", fmt.Sprintf("wal_writer_delay=%d", delay.Milliseconds()))
	missing := 0
	for run := range 2 {
		ledger := load.NewLedger()
		found, age := trial.round(ledger, run)
		missing += found.Identity()
		commits, _ := ledger.Acknowledged()
		t.Logf("Relaxed: of %d acknowledged commits %+v are missing, the oldest of %s before the crash", commits, found, age)
		// A second more for a machine that is busy with other things.
		if age > 3*delay+time.Second {
			t.Errorf("a commit was lost that was acknowledged %s before the crash", age)
		}
	}
	if missing == 0 {
		t.Error("nothing is missing under Relaxed: the crash is none, and the other tests show nothing")
	}
}

// The crashes must be able to find a fault: without the triggers that make a transaction wait, or with a function that trusts its first
// look, acknowledged logouts and passwords go missing.
func TestCrashesFindAFault(t *testing.T) {
	for fault, statement := range map[string]string{
		"no trigger makes a logout wait": `CREATE OR REPLACE FUNCTION authstack_durability_wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		"no lock is looked at":           strings.Replace(durability.Functions(), "l.mode NOT IN ('AccessShareLock', 'RowShareLock')", "false", 1),
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			trial, ledger := newTrial(t, "IdentityDurable", 200*time.Millisecond), load.NewLedger()
			owner := trial.connect(trial.owner)
			execute(t, owner, statement)
			_ = owner.Close(context.Background())
			// Few people, since what others commit with a wait flushes what somebody's last commit did not wait for.
			// Every second crash comes after everybody's last commit, which shows the fault by chance.
			trial.people = trial.people[:2]
			for run := range 2 * rounds {
				if found, _ := trial.round(ledger, run); found.Identity() > 0 {
					t.Logf("found by crash %d: %+v", run, found)
					return
				}
			}
			t.Errorf("%d crashes did not find it", 2*rounds)
		})
	}
}
