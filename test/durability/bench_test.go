package durability

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/report"
)

// levels with and without the triggers.
var levels = []string{"Strict", "IdentityDurable"}

// commitsFile is where BenchmarkLogin writes what it counted, for authstack report --waiting-commits.
const commitsFile = "AUTHSTACK_BENCH_COMMITS"

// benchVersion is the release of authentik that the double stands for; it was measured (facts/authentik-measured.md).
const benchVersion = "2025.12.4"

// BenchmarkLogin counts the commits of a login that wait, request by request, on the double of authentik 2025.12, by
// PostgreSQL's own count of WAL syncs.
func BenchmarkLogin(b *testing.B) {
	var counted []report.WaitingCommits
	for _, level := range levels {
		b.Run(level, func(b *testing.B) {
			c := newCluster(b, "-c", "fsync=on")
			url, stopWorker := c.double(b)
			stopWorker()
			if level == "IdentityDurable" {
				c.install()
			}
			// Each login takes seconds: after each request it is waited until every backend has told what it did.
			logins := min(max(b.N, 10), 20)
			file := filepath.Join(b.TempDir(), "requests.json")
			out, _ := exec.Command(filepath.Join(b.TempDir(), "..", "conformance"), "-product", "authentik", "-url", url, "-token", "bench-token",
				"-dsn", fmt.Sprintf("postgres://postgres@127.0.0.1:%d/authentik?sslmode=disable", c.port), "-worker-stopped", "-logins", strconv.Itoa(logins), "-requests", file).CombinedOutput()
			data, err := os.ReadFile(file)
			if err != nil {
				b.Fatalf("nothing was counted: %v\n%s", err, out)
			}
			found := report.WaitingCommits{Product: "authentik", Version: benchVersion, Double: true, Database: c.version(b), Durability: level, Logins: logins, Requests: requestsOf(b, data, level)}
			sum := 0.0
			for _, r := range found.Requests {
				b.Logf("%s: %.1f commits wait (%s)", r.Request, r.Waits, strings.Join(r.Writes, ", "))
				sum += r.Waits
			}
			b.ReportMetric(sum, "waits/login")
			b.ReportMetric(0, "ns/op")
			counted = slices.DeleteFunc(counted, func(other report.WaitingCommits) bool { return other.Durability == level })
			counted = append(counted, found)
		})
	}
	if path := os.Getenv(commitsFile); path != "" {
		data, err := json.MarshalIndent(counted, "", "  ")
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// requestsOf what the conformance suite counted, with the writes that make a commit wait under that level.
func requestsOf(b *testing.B, data []byte, level string) []report.RequestCommits {
	var counts []struct {
		Request string  `json:"request"`
		Waits   float64 `json:"waits"`
		Writes  []struct {
			Table                      string
			Inserted, Updated, Deleted float64
		} `json:"writes"`
	}
	if err := json.Unmarshal(data, &counts); err != nil {
		b.Fatal(err)
	}
	relaxed := map[string]durability.Table{}
	if level == "IdentityDurable" {
		tables, none := durability.Tables("authentik", benchVersion)
		if none != "" {
			b.Fatal(none)
		}
		for _, table := range tables {
			relaxed[table.Name] = table
		}
	}
	var requests []report.RequestCommits
	for _, count := range counts {
		request := report.RequestCommits{Request: count.Request, Waits: count.Waits}
		for _, w := range count.Writes {
			for _, s := range []struct {
				statement string
				rows      float64
			}{{"INSERT", w.Inserted}, {"UPDATE", w.Updated}, {"DELETE", w.Deleted}} {
				table, made := relaxed[w.Table]
				// A row that only one login in many writes is of the product's housekeeping.
				if s.rows >= 0.5 && (!made || table.Waits(s.statement)) {
					request.Writes = append(request.Writes, s.statement+" "+w.Table)
				}
			}
		}
		requests = append(requests, request)
	}
	return requests
}

// version of PostgreSQL.
func (c *cluster) version(b *testing.B) string {
	conn := c.connect(c.superuser)
	defer func() { _ = conn.Close(context.Background()) }()
	var version string
	if err := conn.QueryRow(context.Background(), "SELECT split_part(current_setting('server_version'), ' ', 1)").Scan(&version); err != nil {
		b.Fatal(err)
	}
	return "PostgreSQL " + version
}

// double starts the double of authentik on the cluster, worker and server, and waits until it is set up.
func (c *cluster) double(b *testing.B) (url string, stopWorker func()) {
	b.Helper()
	directory := b.TempDir()
	for _, name := range []string{"authentik", "conformance"} {
		build := exec.Command("go", "build", "-o", filepath.Join(directory, name), "./cmd/"+name)
		build.Dir = "../../hack/doubles"
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("go build: %v\n%s", err, out)
		}
		if name == "conformance" {
			if err := os.Rename(filepath.Join(directory, name), filepath.Join(filepath.Dir(directory), name)); err != nil {
				b.Fatal(err)
			}
		}
	}
	admin := c.connect(c.superuser)
	execute(b, admin, `ALTER ROLE authentik IN DATABASE authentik SET jit = off`)
	_ = admin.Close(context.Background())
	address := func() string {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		return listener.Addr().String()
	}
	run := func(mode string) (string, func()) {
		http := address()
		var log bytes.Buffer
		cmd := exec.Command(filepath.Join(directory, "authentik"), mode)
		cmd.Stdout, cmd.Stderr = &log, &log
		cmd.Env = append(os.Environ(), "AUTHENTIK_DOUBLE_VERSION="+benchVersion, "AUTHENTIK_SECRET_KEY=bench", "AUTHENTIK_POSTGRESQL__HOST=127.0.0.1", fmt.Sprintf("AUTHENTIK_POSTGRESQL__PORT=%d", c.port),
			"AUTHENTIK_POSTGRESQL__NAME=authentik", "AUTHENTIK_POSTGRESQL__USER=authentik", "AUTHENTIK_POSTGRESQL__PASSWORD=x", "AUTHENTIK_BOOTSTRAP_PASSWORD=bench",
			"AUTHENTIK_BOOTSTRAP_TOKEN=bench-token", "AUTHENTIK_LISTEN__HTTP="+http, "AUTHENTIK_LISTEN__METRICS="+address())
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		stopped := false
		stop := func() {
			if !stopped {
				stopped = true
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		}
		b.Cleanup(stop)
		return "http://" + http, stop
	}
	_, stopWorker = run("worker")
	url, _ = run("server")
	for range 600 {
		request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, url+"/api/v3/core/users/me/", nil)
		request.Header.Set("Authorization", "Bearer bench-token")
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return url, stopWorker
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatal("the double did not come up within a minute")
	return "", nil
}

// BenchmarkDecision is what PostgreSQL's processes spend on one changed session, as the first of a connection and as
// one of many; the difference of the levels is the price of the decision.
func BenchmarkDecision(b *testing.B) {
	for _, level := range levels {
		c := newCluster(b)
		c.schema()
		owner := c.connect(c.owner)
		execute(b, owner, `INSERT INTO authentik_core_session VALUES ('old20', now(), true, '\x80', '10.0.0.1', 'test', now())`)
		_ = owner.Close(context.Background())
		if level == "IdentityDurable" {
			c.install()
		}
		for name, each := range map[string]int{"first of a connection": 1, "one of a thousand": 1000} {
			b.Run(level+"/"+name, func(b *testing.B) {
				connections := max(b.N/each, 100/each+1)
				before := c.processor(b)
				for range connections {
					conn := c.connect(c.owner + " default_query_exec_mode=simple_protocol")
					for range each {
						execute(b, conn, touch)
					}
					c.end(b, conn)
				}
				b.ReportMetric(float64((c.processor(b)-before).Microseconds())/float64(connections*each), "cpu-µs/commit")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// end a connection and wait until its process is gone, so that its processor time is counted.
func (c *cluster) end(b *testing.B, conn *pgx.Conn) {
	pid := conn.PgConn().PID()
	_ = conn.Close(context.Background())
	for range 5000 {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatal("a backend does not end")
}

// processor time of the server's processes that have ended.
func (c *cluster) processor(b *testing.B) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[13])
	system, _ := strconv.Atoi(fields[14])
	return time.Duration(user+system) * 10 * time.Millisecond // in ticks of 1/100 s, as on every Linux that Go runs on
}
