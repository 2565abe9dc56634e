package controllers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/sqlclient"
	"authstack.dev/authstack/internal/stack"
)

// postgres starts a real PostgreSQL of this machine on a port of its own and returns the port.
func postgres(t *testing.T) int32 {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		t.Fatal("these tests need a real PostgreSQL: apt-get install postgresql, or make test-api")
	}
	sort.Strings(found)
	bin := filepath.Dir(found[len(found)-1])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	// PostgreSQL refuses to run as root, and its folder must be its user's.
	dir, err := os.MkdirTemp("", "authstack-postgres") //nolint:usetesting // the folders above t.TempDir are closed to the user postgres
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data, passwords := filepath.Join(dir, "data"), filepath.Join(dir, "password")
	if err := os.WriteFile(passwords, []byte("superuser-password"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.SysProcAttr, cmd.Dir = attributes, dir
		return cmd
	}
	if out, err := run("initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", passwords, "-E", "UTF8", "--no-sync", "--locale=C.UTF-8").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	serve := run("postgres", "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", dir, "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "autovacuum=off",
		// Nothing but what is tested writes WAL.
		"-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "checkpoint_timeout=1h")
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = serve.Process.Signal(syscall.SIGINT)
		_ = serve.Wait()
	})
	return int32(port)
}

func mustObserve(g *WithT, database *sqlclient.Client, target stack.DatabaseTarget) *facts.Database {
	found, err := database.Observe(context.Background(), target)
	g.Expect(err).NotTo(HaveOccurred())
	return found
}

func TestDatabaseEdge(t *testing.T) {
	port := postgres(t)
	ctx := t.Context()
	admin := func() *pgx.Conn {
		t.Helper()
		var conn *pgx.Conn
		NewWithT(t).Eventually(func() (err error) {
			conn, err = pgx.Connect(ctx, fmt.Sprintf("host=127.0.0.1 port=%d user=postgres password=superuser-password dbname=postgres sslmode=disable", port))
			return err
		}, "20s", "100ms").Should(Succeed())
		return conn
	}
	conn := admin()
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range []string{
		`CREATE ROLE authentik LOGIN PASSWORD 'canary-password-0123456789'`,
		`CREATE DATABASE authentik OWNER authentik`,
		`ALTER ROLE authentik SET work_mem = '5MB'`,
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	target := stack.DatabaseTarget{Host: "127.0.0.1", Port: port, Database: "authentik", User: "authentik", Password: "canary-password-0123456789", SSLMode: "disable"}
	database := &sqlclient.Client{}

	t.Run("a database says what it has counted and how quickly it commits", func(t *testing.T) {
		g := NewWithT(t)
		before, err := database.Sample(ctx, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(before.ConnectMicros).To(BeNumerically(">", before.RoundTripMicros))
		g.Expect(before.RoundTripMicros).To(BeNumerically(">", 0))
		g.Expect(before.CommitMicros).To(BeNumerically(">", 0))
		g.Expect(before.WALKnown).To(BeTrue())
		g.Expect(before.WALTimed).To(BeFalse())
		g.Expect(before.JIT).To(BeTrue(), "PostgreSQL's own default")
		g.Expect(before.JoinCollapseLimit).To(Equal(int64(8)))
		g.Expect(before.OwnCommits).To(Equal(int64(21)))
		// The server counts what a session wrote at its end.
		g.Eventually(func(g Gomega) {
			after, err := database.Sample(ctx, target)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(after.WALBytes-before.WALBytes).To(BeNumerically(">", 21*24), "each of the 21 commits wrote its message")
		}, "10s", "200ms").Should(Succeed())
	})
	t.Run("a commit reaches the disk though the role waits for none", func(t *testing.T) {
		g := NewWithT(t)
		_, err := conn.Exec(ctx, `ALTER ROLE authentik SET synchronous_commit = off`)
		g.Expect(err).NotTo(HaveOccurred())
		var before string
		g.Expect(conn.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&before)).To(Succeed())
		g.Expect(database.Commit(ctx, target)).To(Succeed())
		var flushed bool
		g.Expect(conn.QueryRow(ctx, `SELECT pg_current_wal_flush_lsn() > $1::pg_lsn`, before).Scan(&flushed)).To(Succeed())
		g.Expect(flushed).To(BeTrue())
		_, err = conn.Exec(ctx, `ALTER ROLE authentik RESET synchronous_commit`)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("a database says what it has in force", func(t *testing.T) {
		g := NewWithT(t)
		facts, err := database.Observe(ctx, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(facts.Version).To(MatchRegexp(`^[0-9]+(\.[0-9]+)?`))
		g.Expect(facts.Encoding).To(Equal("UTF8"))
		g.Expect(facts.Settings["fsync"].Value).To(Equal("off"))
		g.Expect(facts.Settings["shared_buffers"].Value).To(Equal("2048"))
		g.Expect(facts.Settings["shared_buffers"].Unit).To(Equal("8kB"))
		g.Expect(facts.Settings["shared_buffers"].Source).To(Equal("command line"))
		g.Expect(facts.Settings["shared_buffers"].BootValue).NotTo(BeEmpty())
		g.Expect(facts.Settings["work_mem"].Value).To(Equal("5120"), "the settings of the role are in effect")
		g.Expect(facts.RoleSettings).To(BeEmpty(), "a setting of the role outside of its database is not ours")
		g.Expect(facts.Migrated).To(BeFalse())
	})
	t.Run("settings of the role are set where they differ, and taken back", func(t *testing.T) {
		g := NewWithT(t)
		want := map[string]string{"jit": "off", "join_collapse_limit": "4", "plan_cache_mode": "force_custom_plan", "search_path": `it's "public"`}
		delete(want, "search_path")
		changed, err := database.SetRole(ctx, target, nil, want, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed).To(BeTrue())
		facts, err := database.Observe(ctx, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(facts.RoleSettings).To(Equal(want))
		g.Expect(facts.Settings["jit"].Value).To(Equal("off"))
		g.Expect(facts.Settings["jit"].Source).To(Equal("database user"))
		var before, after string
		g.Expect(conn.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&before)).To(Succeed())
		changed, err = database.SetRole(ctx, target, facts.RoleSettings, want, []string{"enable_sort"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(changed).To(BeFalse())
		g.Expect(conn.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&after)).To(Succeed())
		g.Expect(after).To(Equal(before), "what is already so writes nothing")
		_, err = database.SetRole(ctx, target, facts.RoleSettings, map[string]string{"jit": "off"}, []string{"join_collapse_limit", "plan_cache_mode"})
		g.Expect(err).NotTo(HaveOccurred())
		facts, err = database.Observe(ctx, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(facts.RoleSettings).To(Equal(map[string]string{"jit": "off"}))
	})
	t.Run("ANALYZE reaches every table of the role", func(t *testing.T) {
		g := NewWithT(t)
		own, err := pgx.Connect(ctx, fmt.Sprintf("host=127.0.0.1 port=%d user=authentik password=%s dbname=authentik sslmode=disable", port, target.Password))
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = own.Close(context.Background()) }()
		for _, statement := range []string{
			`CREATE TABLE django_migrations (id int); INSERT INTO django_migrations VALUES (1)`,
			`CREATE TABLE "Odd ""name" (id int); INSERT INTO "Odd ""name" SELECT generate_series(1, 1000)`,
		} {
			_, err := own.Exec(ctx, statement)
			g.Expect(err).NotTo(HaveOccurred())
		}
		facts, err := database.Observe(ctx, target)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(facts.Migrated).To(BeTrue())
		g.Expect(facts.Tables).To(Equal(2))
		g.Expect(facts.NeverAnalyzed).To(Equal(2))
		g.Expect(database.Analyze(ctx, target)).To(Succeed())
		g.Eventually(func() int {
			facts, err = database.Observe(ctx, target)
			g.Expect(err).NotTo(HaveOccurred())
			return facts.NeverAnalyzed
		}, "5s", "100ms").Should(BeZero())
	})
	t.Run("the triggers that let commits go are put on, found and taken off", func(t *testing.T) {
		g := NewWithT(t)
		tables, _ := durability.Tables("authentik", "2025.12.4")
		own, err := pgx.Connect(ctx, fmt.Sprintf("host=127.0.0.1 port=%d user=authentik password=%s dbname=authentik sslmode=disable", port, target.Password))
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = own.Close(context.Background()) }()
		judged := func() durability.Finding {
			facts, err := database.Observe(ctx, target)
			g.Expect(err).NotTo(HaveOccurred())
			return durability.Judge(tables, facts.Durability)
		}
		g.Expect(judged().Change.Install).To(HaveLen(len(tables)))
		g.Expect(database.SetDurability(ctx, target, durability.Change{Install: tables})).To(
			MatchError(`relation "public.django_postgres_cache_cacheentry" does not exist (SQLSTATE 42P01)`))
		for _, statement := range []string{
			`CREATE TABLE django_postgres_cache_cacheentry (cache_key text PRIMARY KEY, value text, expires timestamptz)`,
			`CREATE TABLE authentik_core_session (session_key text PRIMARY KEY, expires timestamptz, session_data bytea)`,
			`CREATE TABLE authentik_core_authenticatedsession (session_id text PRIMARY KEY REFERENCES authentik_core_session DEFERRABLE INITIALLY DEFERRED)`,
			`CREATE TABLE authentik_core_user (id int PRIMARY KEY, last_login timestamptz)`,
			`CREATE TABLE authentik_policies_reputation_reputation (identifier text, ip inet, score bigint)`,
			`CREATE TABLE authentik_tasks_task (message_id uuid PRIMARY KEY, state text)`,
			`CREATE TABLE authentik_tasks_tasklog (task_id uuid REFERENCES authentik_tasks_task DEFERRABLE INITIALLY DEFERRED)`,
			`CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		} {
			_, err := own.Exec(ctx, statement)
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, err = own.Exec(ctx, `CREATE CONSTRAINT TRIGGER pgtrigger_notify_enqueueing_0bc94 AFTER UPDATE ON authentik_tasks_task DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nothing()`)
		g.Expect(err).NotTo(HaveOccurred()) // The product's queue has one, and it is in nobody's way.
		for range 2 {                       // Once more changes nothing.
			g.Expect(database.SetDurability(ctx, target, durability.Change{Install: tables})).To(Succeed())
			g.Expect(judged()).To(Equal(durability.Finding{Relaxed: tables}))
		}
		for statement, problem := range map[string]string{
			`DROP TRIGGER authstack_durability_update ON authentik_core_session`:                                                                           "authentik_core_session lacks authstack_durability_update",
			`ALTER TABLE authentik_core_session ENABLE TRIGGER authstack_durability_update`:                                                                "authentik_core_session lacks authstack_durability_update",
			`CREATE OR REPLACE FUNCTION authstack_durability() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`:                               "the functions are missing or not this release's",
			`CREATE CONSTRAINT TRIGGER zzz AFTER INSERT ON authentik_core_session DEFERRABLE FOR EACH ROW EXECUTE FUNCTION nothing()`:                      "authentik_core_session has the deferred trigger zzz",
			`CREATE TABLE elsewhere (id int); CREATE TRIGGER x BEFORE DELETE ON elsewhere FOR EACH STATEMENT EXECUTE FUNCTION authstack_durability_wait()`: "elsewhere has triggers that it should not have",
		} {
			_, err := own.PgConn().Exec(ctx, statement).ReadAll()
			g.Expect(err).NotTo(HaveOccurred())
			finding := judged()
			g.Expect(finding.Problems).To(ContainElement(ContainSubstring(problem)))
			_, err = own.PgConn().Exec(ctx, `DROP TRIGGER IF EXISTS zzz ON authentik_core_session; DROP TABLE IF EXISTS elsewhere`).ReadAll()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(database.SetDurability(ctx, target, durability.Change{Install: finding.Change.Install})).To(Succeed())
			g.Expect(judged().Problems).To(BeEmpty())
		}
		// While a login holds the table, it gives up in time and changes nothing.
		_, err = own.PgConn().Exec(ctx, `BEGIN; LOCK TABLE authentik_core_session IN ROW EXCLUSIVE MODE`).ReadAll()
		g.Expect(err).NotTo(HaveOccurred())
		off := durability.Judge(nil, mustObserve(g, database, target).Durability).Change
		g.Expect(database.SetDurability(ctx, target, off)).To(MatchError(ContainSubstring("lock timeout")))
		g.Expect(judged()).To(Equal(durability.Finding{Relaxed: tables}))
		_, err = own.Exec(ctx, `ROLLBACK`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(database.SetDurability(ctx, target, off)).To(Succeed())
		g.Expect(mustObserve(g, database, target).Durability.Triggers).To(BeEmpty())
		g.Expect(mustObserve(g, database, target).Durability.Functions).To(BeEmpty())
	})
	t.Run("a refusal is told in the server's words and without the password", func(t *testing.T) {
		g := NewWithT(t)
		wrong := target
		wrong.Password = "canary-wrong-0123456789"
		_, err := database.Observe(ctx, wrong)
		g.Expect(err).To(MatchError(`password authentication failed for user "authentik" (SQLSTATE 28P01)`))
		wrong = target
		wrong.Port = 1
		_, err = database.Observe(ctx, wrong)
		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
		wrong = target
		wrong.SSLMode = "require"
		_, err = database.Observe(ctx, wrong)
		g.Expect(err).To(HaveOccurred())
		g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
		_, err = database.SetRole(ctx, target, nil, map[string]string{"shared_buffers": "1GB"}, nil)
		g.Expect(err).To(MatchError(ContainSubstring("SQLSTATE 55P02")))
	})
	t.Run("a server that accepts and says nothing is given up in time", func(t *testing.T) {
		g := NewWithT(t)
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = silent.Close() }()
		mute := target
		mute.Port = int32(silent.Addr().(*net.TCPAddr).Port)
		began := time.Now()
		_, err = (&sqlclient.Client{Timeout: 500 * time.Millisecond}).Observe(ctx, mute)
		g.Expect(err).To(MatchError(facts.ErrStandsStill))
		g.Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
		g.Expect(silent.Close()).To(Succeed())
		_, err = database.Observe(ctx, mute)
		g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
		g.Expect(err).NotTo(MatchError(facts.ErrStandsStill), "a port that nobody listens on says nothing of a hang")
		nobody := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}
		_, err = (&sqlclient.Client{Timeout: 200 * time.Millisecond, Dial: nobody}).Observe(ctx, mute)
		g.Expect(err).To(HaveOccurred())
		g.Expect(err).NotTo(MatchError(facts.ErrStandsStill), "nor does an address that nobody answers at")
		wrong := target
		wrong.Password = "wrong"
		_, err = database.Observe(ctx, wrong)
		var refused *facts.ServerError
		g.Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
	})
}
