// Package durability tests on a real PostgreSQL that a commit waits for the WAL when it has to, and only then: every
// way into and around the triggers, a crash under load, and what they cost.
package durability

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/internal/durability"
)

// cluster is a PostgreSQL of its own in a folder of its own.
type cluster struct {
	t                testing.TB
	bin, data        string
	port             int
	credential       *syscall.Credential
	options          []string
	log              strings.Builder
	process          *exec.Cmd
	processes        sync.Mutex
	superuser, owner string // DSNs
}

// newCluster makes and starts one. The WAL writer sleeps, so that what a commit does not flush stays unflushed, and
// with wal_level=minimal nothing but the test writes WAL.
func newCluster(t testing.TB, options ...string) *cluster {
	t.Helper()
	// AUTHSTACK_POSTGRES_BIN names the programs of another version, to run the same tests on it.
	found, _ := filepath.Glob(cmp.Or(os.Getenv("AUTHSTACK_POSTGRES_BIN"), "/usr/lib/postgresql/*/bin") + "/postgres")
	if len(found) == 0 || os.Getuid() != 0 {
		t.Fatal("these tests need root and a PostgreSQL in /usr/lib/postgresql; `make test` installs it: apt-get install postgresql")
	}
	sort.Strings(found)
	account, err := user.Lookup("postgres")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	dir, err := os.MkdirTemp("", "authstack-durability") //nolint:usetesting // the folders above t.TempDir are closed to the user postgres
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, bin: filepath.Dir(found[len(found)-1]), data: filepath.Join(dir, "data"), port: listener.Addr().(*net.TCPAddr).Port,
		credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	_ = listener.Close()
	c.options = append([]string{"-D", c.data, "-p", strconv.Itoa(c.port), "-h", "127.0.0.1", "-k", dir, "-c", "wal_writer_delay=10s", "-c", "wal_level=minimal",
		"-c", "max_wal_senders=0", "-c", "autovacuum=off", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "checkpoint_timeout=1h", "-c", "jit=off",
		"-c", "max_prepared_transactions=5", "-c", "max_wal_size=1GB"}, options...)
	initdb := exec.Command(filepath.Join(c.bin, "initdb"), "-D", c.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--wal-segsize=1")
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: c.credential}
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	c.superuser = fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=authentik sslmode=disable", c.port)
	c.owner = fmt.Sprintf("host=127.0.0.1 port=%d user=authentik dbname=authentik sslmode=disable", c.port)
	c.start()
	t.Cleanup(func() { c.kill() })
	conn := c.connect(strings.Replace(c.superuser, "dbname=authentik", "dbname=postgres", 1))
	execute(t, conn, `CREATE ROLE authentik LOGIN`, `CREATE DATABASE authentik OWNER authentik`)
	_ = conn.Close(context.Background())
	return c
}

// start the server; it recovers where it was killed.
func (c *cluster) start() {
	c.t.Helper()
	c.process = exec.Command(filepath.Join(c.bin, "postgres"), c.options...)
	c.process.Dir, c.process.Stderr = filepath.Dir(c.data), &c.log
	// A session of its own, so that kill reaches every process of it and no other.
	c.process.SysProcAttr = &syscall.SysProcAttr{Credential: c.credential, Setpgid: true}
	if err := c.process.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// pids of the server and of its children, but not of those that are given.
func (c *cluster) pids(but ...int) []int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", c.process.Process.Pid, c.process.Process.Pid))
	pids := []int{c.process.Process.Pid}
	for _, word := range strings.Fields(string(children)) {
		pid, _ := strconv.Atoi(word)
		pids = append(pids, pid)
	}
	var out []int
	for _, pid := range pids {
		keep := true
		for _, other := range but {
			keep = keep && pid != other
		}
		if keep {
			out = append(out, pid)
		}
	}
	return out
}

// stopWALWriter keeps the process from flushing for good what nobody waits for, which it does every ten seconds at most, so
// that a commit that was flushed waited for it. It is stopped in its sleep, where it holds no lock.
func (c *cluster) stopWALWriter(monitor *pgx.Conn) {
	c.t.Helper()
	const where = "SELECT pid, coalesce(wait_event, '') FROM pg_stat_activity WHERE backend_type = 'walwriter'"
	for range 10_000 {
		var pid int
		var event string
		if err := monitor.QueryRow(context.Background(), where).Scan(&pid, &event); err != nil {
			c.t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			c.t.Fatal(err)
		}
		if err := monitor.QueryRow(context.Background(), where).Scan(&pid, &event); err != nil {
			c.t.Fatal(err)
		}
		if strings.EqualFold(event, "WalWriterMain") {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGCONT)
		time.Sleep(time.Millisecond)
	}
	c.t.Fatal("the WAL writer never sleeps")
}

// kill -9 the server and all of its children at once.
func (c *cluster) kill() {
	c.processes.Lock()
	defer c.processes.Unlock()
	if c.process == nil {
		return
	}
	pids := c.pids()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	for _, pid := range append(pids, c.pids()...) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = c.process.Wait()
	for _, pid := range pids[1:] {
		for range 1000 {
			if syscall.Kill(pid, 0) != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	c.process = nil
}

// connect as soon as the server answers.
func (c *cluster) connect(dsn string) *pgx.Conn {
	c.t.Helper()
	var last error
	for range 600 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		conn, err := pgx.Connect(ctx, dsn)
		cancel()
		if err == nil {
			return conn
		}
		last = err
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatalf("PostgreSQL does not answer: %v\n%s", last, c.log.String())
	return nil
}

func execute(t testing.TB, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.PgConn().Exec(context.Background(), statement).ReadAll(); err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
}

// schema makes the product's tables, in the shapes that the double of authentik has, as the role that owns them.
func (c *cluster) schema() {
	c.t.Helper()
	core, err := os.ReadFile("../../hack/doubles/internal/authentik/schema/core.sql")
	if err != nil {
		c.t.Fatal(err)
	}
	owner := c.connect(c.owner)
	defer func() { _ = owner.Close(context.Background()) }()
	execute(c.t, owner, string(core))
}

// install the triggers of authentik 2025.12.
func (c *cluster) install() {
	c.t.Helper()
	tables, none := durability.Tables("authentik", "2025.12.4")
	if none != "" {
		c.t.Fatal(none)
	}
	owner := c.connect(c.owner)
	defer func() { _ = owner.Close(context.Background()) }()
	execute(c.t, owner, "BEGIN;"+strings.Join(durability.Install(tables), ";\n")+";COMMIT")
}
