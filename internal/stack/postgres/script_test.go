package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"authstack.dev/authstack/internal/tuning"
)

// realPostgres is the major version of a PostgreSQL on this machine, as Debian lays it out.
func realPostgres(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 || os.Getuid() != 0 {
		t.Fatal("this test needs root and a PostgreSQL in /usr/lib/postgresql; `make test-unit` installs it: apt-get install postgresql")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Fatal("unshare is missing: apt-get install util-linux")
	}
	return strings.Split(found[len(found)-1], "/")[4]
}

// pod is a directory laid out like the Pod, and the environment of its container.
type pod struct {
	t    *testing.T
	root string
	port string
	env  []string
}

func newPod(t *testing.T, parameters map[string]string) *pod {
	major := realPostgres(t)
	// Not t.TempDir: its name is too long for a socket's path, and PostgreSQL's user must reach it.
	root, err := os.MkdirTemp("", "authstack-postgres-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	p := &pod{t: t, root: root, port: port}
	files := configuration(tuning.Recommend(tuning.Input{
		Major: majorOf(major), MemoryBytes: 256 << 20, VolumeBytes: 1 << 30, Connections: 20, Parameters: parameters,
	}))
	for _, directory := range []string{"config", "data", "sockets", "tmp", "secret"} {
		if err := os.Mkdir(filepath.Join(root, directory), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(root, directory), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if name == "postgresql.conf" {
			// The paths and the port of this Pod.
			content = strings.NewReplacer(configMount, p.path("config"), socketMount, p.path("sockets"),
				"port = '5432'", "port = '"+p.port+"'").Replace(content)
		}
		content = strings.ReplaceAll(content, "--port=5432", "--port="+p.port)
		content = strings.ReplaceAll(content, "/tmp/initialise.log", p.path("tmp/initialise.log"))
		p.write("config/"+name, content)
	}
	p.write("secret/password", "it's a \\ \"secret\"")
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(os.Environ(), "AUTHSTACK_PG_MAJOR="+major, "AUTHSTACK_DATA="+p.path("data"), "AUTHSTACK_CONFIG="+p.path("config"),
		"AUTHSTACK_SOCKETS="+p.path("sockets"), "AUTHSTACK_PASSWORD_FILE="+p.path("secret/password"), "AUTHSTACK_ROLE=authentik", "AUTHSTACK_DATABASE=authentik")
	return p
}

func (p *pod) path(name string) string { return filepath.Join(p.root, name) }

func (p *pod) write(name, content string) {
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// start the Pod's command as uid 999 and process 1 of a PID namespace of its own, with the mounted
// /etc/passwd. The returned function stops it as the kubelet does: preStop, then SIGTERM.
func (p *pod) start(ctx context.Context) (stop func() string) {
	p.t.Helper()
	var log strings.Builder
	command := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", fmt.Sprintf(
		"mount --bind %s /etc/passwd && exec setpriv --reuid 999 --regid 999 --clear-groups --no-new-privs /bin/sh %s", p.path("config/passwd"), p.path("config/start.sh")))
	command.Env, command.Stdout, command.Stderr = p.env, &log, &log
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	// initdb syncs a thousand files, on a busy disk that takes its time.
	deadline := time.Now().Add(5 * time.Minute)
	for !p.ready() {
		select {
		case err := <-done:
			p.t.Fatalf("the command ended before it was ready: %v\n%s", err, log.String())
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = command.Process.Kill()
			p.t.Fatalf("not ready:\n%s", log.String())
		}
	}
	return func() string {
		p.t.Helper()
		children, err := exec.Command("pgrep", "-P", fmt.Sprint(command.Process.Pid)).Output()
		if err != nil {
			p.t.Fatalf("no process 1 of the Pod: %v", err)
		}
		first := strings.TrimSpace(string(children))
		began := time.Now()
		out, err := exec.Command("nsenter", "--pid", "--mount", "--target", first, "setpriv", "--reuid", "999", "--regid", "999", "--clear-groups",
			"/bin/sh", p.path("config/stop.sh")).CombinedOutput()
		// Process 1 takes the script with it when it ends.
		if err != nil && !strings.Contains(err.Error(), "killed") {
			p.t.Errorf("preStop: %v: %s", err, out)
		}
		select {
		case err := <-done:
			if err != nil {
				p.t.Errorf("PostgreSQL did not end well: %v\n%s", err, log.String())
			}
		case <-time.After(2 * time.Minute): // The client would be there for five.
			_ = command.Process.Signal(syscall.SIGKILL)
			p.t.Error("PostgreSQL did not stop within two minutes, though a client was connected only")
		}
		p.t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
		return log.String()
	}
}

func (p *pod) ready() bool {
	command := exec.Command("/bin/sh", p.path("config/ready.sh"))
	command.Env = p.env
	return command.Run() == nil
}

// query as the product does: over TCP, with the password.
func (p *pod) query(sql string) string {
	p.t.Helper()
	password, err := os.ReadFile(p.path("secret/password"))
	if err != nil {
		p.t.Fatal(err)
	}
	command := exec.Command("psql", "-XAtq", "-h", "127.0.0.1", "-p", p.port, "-U", "authentik", "-d", "authentik", "-c", sql)
	command.Env = append(os.Environ(), "PGPASSWORD="+string(password))
	out, err := command.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: %v: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestStandaloneStartsKeepsItsDataAndStopsFast runs the scripts of the Pod against a real PostgreSQL.
func TestStandaloneStartsKeepsItsDataAndStopsFast(t *testing.T) {
	p := newPod(t, map[string]string{"work_mem": "3MB", "log_min_duration_statement": "1min"})
	// What a Pod killed in the middle of its first start leaves behind.
	if err := os.MkdirAll(p.path("data/pgdata.unfinished/base"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(p.path("data/pgdata.unfinished"), 999, 999); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(p.path("data/pgdata.unfinished/base"), 999, 999); err != nil {
		t.Fatal(err)
	}
	stop := p.start(t.Context())
	p.query("CREATE TABLE kept AS SELECT 42 AS answer")
	if got := p.query("SELECT current_setting('work_mem'), current_setting('shared_buffers'), current_setting('data_checksums'), pg_encoding_to_char(encoding), (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) FROM pg_database WHERE datname = current_database()"); got != "3MB|64MB|on|UTF8|f" {
		t.Errorf("in force: %s", got)
	}
	// A client that never goes: SIGTERM alone would wait for it until the Pod is killed.
	client := exec.Command("psql", "-Xq", "-h", "127.0.0.1", "-p", p.port, "-U", "authentik", "-d", "authentik", "-c", "SELECT pg_sleep(300)")
	password, _ := os.ReadFile(p.path("secret/password"))
	client.Env = append(os.Environ(), "PGPASSWORD="+string(password))
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Process.Kill(); _ = client.Wait() }()
	time.Sleep(300 * time.Millisecond)
	if log := stop(); strings.Contains(log, "secret") || !strings.Contains(log, "database system is shut down") {
		t.Errorf("the log has the password or no clean end:\n%s", log)
	}

	stop = p.start(t.Context())
	if got := p.query("SELECT answer FROM kept"); got != "42" {
		t.Errorf("after a restart: %s", got)
	}
	if log := stop(); strings.Contains(log, "recovery") || strings.Contains(log, "first start") {
		t.Errorf("the restart was not clean:\n%s", log)
	}
}
