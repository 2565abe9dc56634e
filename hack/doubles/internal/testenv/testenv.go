// Package testenv starts private servers for tests: PostgreSQL and Redis in a temporary directory on free ports, and
// the doubles as built from this module. What is missing on the machine fails the test with what to install.
package testenv

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
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
)

// given are the ports that were given out: one that nobody listens on yet must not be given twice.
var given sync.Map

// FreePort returns a loopback port that nobody listens on and nobody else was given.
func FreePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if _, taken := given.LoadOrStore(port, true); !taken {
			return port
		}
	}
}

// Postgres is a private instance.
type Postgres struct{ Port int }

// DSN is its address for a database.
func (p *Postgres) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.Port, database)
}

// bin finds a PostgreSQL program, the newest version first.
func bin(t testing.TB, name string) string {
	list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	sort.Slice(list, func(i, j int) bool { return major(list[i]) > major(list[j]) })
	if len(list) > 0 {
		return list[0]
	}
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	t.Fatalf("%s is not installed: on Debian, apt-get install postgresql-15 (any version from 14 will do)", name)
	return ""
}

func major(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

// StartPostgres starts PostgreSQL with pg_stat_statements and without what would disturb the counts: autovacuum,
// timed checkpoints and an eager WAL writer.
func StartPostgres(t testing.TB) *Postgres {
	t.Helper()
	initdb, postgres := bin(t, "initdb"), bin(t, "postgres")
	// Not t.TempDir: its parents are closed to the postgres user.
	dir, err := os.MkdirTemp("", "doubles-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cred := postgresUser(t, dir)
	data := filepath.Join(dir, "data")
	init := exec.Command(initdb, "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
	init.Dir, init.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p := &Postgres{Port: FreePort(t)}
	cmd := exec.Command(postgres, "-D", data, "-p", strconv.Itoa(p.Port), "-k", dir, "-c", "listen_addresses=127.0.0.1",
		"-c", "shared_preload_libraries=pg_stat_statements", "-c", "autovacuum=off", "-c", "checkpoint_timeout=30min", "-c", "wal_writer_delay=10s", "-c", "max_connections=200", "-c", "jit=off")
	cmd.Dir = dir
	start(t, "postgres", cmd, cred, syscall.SIGQUIT)
	// It listens before it can answer: "the database system is starting up".
	Until(t, "PostgreSQL", func() error {
		conn, err := pgx.Connect(t.Context(), p.DSN("postgres"))
		if err == nil {
			err = conn.Close(t.Context())
		}
		return err
	})
	return p
}

// postgresUser gives dir to the postgres user when the test runs as root, which PostgreSQL refuses.
func postgresUser(t testing.TB, dir string) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		t.Fatalf("running as root, and there is no user postgres to run PostgreSQL as: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// StartRedis starts a private Redis and returns its port.
func StartRedis(t testing.TB) int {
	t.Helper()
	path := ""
	for _, name := range []string{"redis-server", "valkey-server"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("redis-server is not installed: on Debian, apt-get install redis-server")
	}
	port := FreePort(t)
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	start(t, "redis", cmd, nil, syscall.SIGTERM)
	Until(t, "Redis", func() error { return dial(port) })
	return port
}

// Build builds a command of this module and returns its path.
func Build(t testing.TB, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", out, "authstack.dev/authstack/hack/doubles/cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, b)
	}
	return out
}

// Proc is a running program.
type Proc struct {
	cmd  *exec.Cmd
	done chan struct{}
	sig  syscall.Signal
	Log  *bytes.Buffer
}

// Stop ends the program and waits for it.
func (p *Proc) Stop() {
	_ = p.cmd.Process.Signal(p.sig)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// ExitCode is the exit status of a stopped program.
func (p *Proc) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Start starts one of the doubles with env alone as its environment.
func Start(t testing.TB, path string, args, env []string) *Proc {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = env
	return start(t, filepath.Base(path), cmd, nil, syscall.SIGTERM)
}

func start(t testing.TB, name string, cmd *exec.Cmd, cred *syscall.Credential, sig syscall.Signal) *Proc {
	t.Helper()
	p := &Proc{cmd: cmd, done: make(chan struct{}), sig: sig, Log: &bytes.Buffer{}}
	cmd.Stdout, cmd.Stderr = io.Writer(p.Log), io.Writer(p.Log)
	// Dies with the test, even one that panics.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() { _ = cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("--- output of %s:\n%s", name, tail(p.Log.String()))
		}
	})
	return p
}

func tail(s string) string {
	if len(s) > 6000 {
		return "…" + s[len(s)-6000:]
	}
	return s
}

func dial(port int) error {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second)
	if err == nil {
		_ = c.Close()
	}
	return err
}

// Until waits for f to succeed, up to five minutes: a busy machine may stand still for a while.
func Until(t testing.TB, what string, f func() error) {
	t.Helper()
	var err error
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); {
		if err = f(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s did not come up within five minutes: %v", what, err)
}

// Answers is an Until condition: url answers with status.
func Answers(url string, status int, header ...string) func() error {
	return func() error {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != status {
			return fmt.Errorf("%s answered %d", url, res.StatusCode)
		}
		return nil
	}
}
