package conformance_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/conformance"
	"authstack.dev/authstack/hack/doubles/internal/testenv"
)

const token = "conformance-bootstrap-token"

// stack is a running authentik double.
type stack struct {
	url, worker, dsn string
	workerProc       *testenv.Proc
	restart          func(more ...string) *testenv.Proc // starts the worker anew
}

func createDatabase(t *testing.T, pg *testenv.Postgres, name string) string {
	t.Helper()
	ctx := context.Background()
	var conn *pgx.Conn
	testenv.Until(t, "PostgreSQL", func() (err error) { conn, err = pgx.Connect(ctx, pg.DSN("postgres")); return err })
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	own, err := pgx.Connect(ctx, pg.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close(ctx)
	if _, err := own.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		t.Fatal(err)
	}
	return pg.DSN(name)
}

func startAuthentik(t *testing.T, bin string, pg *testenv.Postgres, name, version string, more ...string) *stack {
	t.Helper()
	s := &stack{dsn: createDatabase(t, pg, name)}
	// The key comes from a file and the password through env://, as a chart would hand them over.
	key := t.TempDir() + "/key"
	if err := os.WriteFile(key, []byte("not-a-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append([]string{"AUTHENTIK_DOUBLE_VERSION=" + version, "AUTHENTIK_SECRET_KEY=file://" + key, "AUTHENTIK_POSTGRESQL__HOST=127.0.0.1", fmt.Sprintf("AUTHENTIK_POSTGRESQL__PORT=%d", pg.Port),
		"AUTHENTIK_POSTGRESQL__NAME=" + name, "AUTHENTIK_POSTGRESQL__USER=postgres", "AUTHENTIK_POSTGRESQL__PASSWORD=env://PGPASS", "PGPASS=x",
		"AUTHENTIK_BOOTSTRAP_PASSWORD=admin", "AUTHENTIK_BOOTSTRAP_TOKEN=" + token}, more...)
	listen := func() (string, []string) {
		a := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		return "http://" + a, append([]string{"AUTHENTIK_LISTEN__HTTP=" + a, fmt.Sprintf("AUTHENTIK_LISTEN__METRICS=127.0.0.1:%d", testenv.FreePort(t))}, env...)
	}
	var we, se []string
	s.url, se = listen()
	s.worker, we = listen()
	// Both start at once: the migration lock lets one of them migrate.
	testenv.Start(t, bin, []string{"server"}, se)
	s.restart = func(more ...string) *testenv.Proc {
		return testenv.Start(t, bin, []string{"worker"}, append(slices.Clone(we), more...))
	}
	s.workerProc = s.restart()
	testenv.Until(t, "server", testenv.Answers(s.url+"/-/health/ready/", 200))
	testenv.Until(t, "worker", testenv.Answers(s.worker+"/-/health/live/", 200))
	testenv.Until(t, "bootstrap", testenv.Answers(s.url+"/api/v3/admin/version/", 200, "Authorization", "Bearer "+token))
	return s
}

func run(t *testing.T, o conformance.Options) {
	t.Helper()
	checks, err := conformance.Run(context.Background(), o)
	if err != nil {
		t.Errorf("the suite could not finish: %v", err)
	}
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		} else if testing.Verbose() {
			t.Logf("pass %s: %s", c.Name, c.Detail)
		}
	}
}

func TestAuthentik(t *testing.T) {
	bin := testenv.Build(t, "authentik")
	pg := testenv.StartPostgres(t)
	for _, v := range []struct {
		version string
		redis   bool
	}{{"2025.12.4", false}, {"2026.5.4", false}, {"2026.8.3", false}, {"2025.8.6", true}} {
		t.Run(v.version, func(t *testing.T) {
			var more []string
			if v.redis {
				more = []string{"AUTHENTIK_REDIS__HOST=127.0.0.1", fmt.Sprintf("AUTHENTIK_REDIS__PORT=%d", testenv.StartRedis(t))}
			}
			s := startAuthentik(t, bin, pg, "ak"+fmt.Sprint(testenv.FreePort(t)), v.version, more...)
			o := conformance.Options{Product: "authentik", URL: s.url, Version: v.version, Token: token, DSN: s.dsn}
			run(t, o)
			drained(t, s)
			s.stopWorker(t)
			if c := s.workerProc.ExitCode(); c != 0 {
				t.Errorf("worker ended with %d after SIGTERM, want 0", c)
			}
			o.WorkerStopped, o.Logins = true, 10
			run(t, o)
			if !v.redis {
				workerCost(t, s)
			}
		})
	}
}

// connect to the stack's database.
func (s *stack) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// stopWorker ends the worker and its backends, which report what they did when they end, a moment after the worker: those
// that nobody is connected to any more.
func (s *stack) stopWorker(t *testing.T) {
	t.Helper()
	s.workerProc.Stop()
	ctx, conn := context.Background(), s.connect(t)
	defer conn.Close(ctx)
	testenv.Until(t, "the end of the worker's backends", func() error {
		rows, err := conn.Query(ctx, "SELECT client_port FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
		if err != nil {
			return err
		}
		ports, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return err
		}
		sockets, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			return err
		}
		for _, port := range ports {
			// LOCAL-ADDRESS:PORT REMOTE-ADDRESS:PORT STATE, see proc_pid_net(5); 01 is a connection that stands.
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^\s*\d+: 0100007F:%04X \S+ 01 `, port)).Match(sockets) {
				return fmt.Errorf("the backend of port %d has not ended", port)
			}
		}
		return nil
	})
}

// drained waits until the worker has done every task the logins enqueued: four a login.
func drained(t *testing.T, s *stack) {
	t.Helper()
	ctx, conn := context.Background(), s.connect(t)
	defer conn.Close(ctx)
	testenv.Until(t, "an empty task queue", func() error {
		var waiting, dispatched, handled int
		err := conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state <> 'done'), count(*) FILTER (WHERE actor_name LIKE '%dispatch'), count(*) FILTER (WHERE actor_name LIKE '%handler') FROM authentik_tasks_task`).Scan(&waiting, &dispatched, &handled)
		if err != nil {
			return err
		}
		if waiting > 0 || dispatched == 0 || handled != 3*dispatched {
			return fmt.Errorf("%d waiting, %d dispatched, %d handled", waiting, dispatched, handled)
		}
		return nil
	})
}

// workerCost lets a worker catch up with what the logins left, and counts its commits: 83 a login on the real
// product, about 20 a task (facts/authentik-measured.md §7). It has one consumer, since two share a sync now and then.
func workerCost(t *testing.T, s *stack) {
	t.Helper()
	ctx, conn := context.Background(), s.connect(t)
	defer conn.Close(ctx)
	var waiting int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM authentik_tasks_task WHERE state = 'queued' AND actor_name LIKE '%dispatch'").Scan(&waiting); err != nil {
		t.Fatal(err)
	}
	syncs := func() (n int) {
		if err := conn.QueryRow(ctx, "SELECT wal_sync FROM pg_stat_wal").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := syncs()
	s.workerProc = s.restart("AUTHENTIK_WORKER__THREADS=1")
	drained(t, s)
	s.stopWorker(t)
	per := float64(syncs()-before) / float64(waiting)
	t.Logf("worker: %.1f WAL syncs for each of %d events", per, waiting)
	if per < 60 || per > 95 {
		t.Errorf("the worker made %.1f WAL syncs per event, measured 83", per)
	}
}
