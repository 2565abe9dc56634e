// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/loadtests/scenarios"
)

// binary is k6 with the extension, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "authstack-k6")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "k6")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

type scenario struct {
	Name             string `json:"name"`
	Iterations       int    `json:"iterations"`
	WarmUpIterations int    `json:"warmUpIterations"`
	VirtualUsers     int    `json:"virtualUsers"`
	model
}

// model is the part of a scenario that chooses its load model.
type model struct {
	DurationSeconds    int    `json:"durationSeconds,omitempty"`
	RatePerMinute      int    `json:"ratePerMinute,omitempty"`
	RateStepsPerMinute []int  `json:"rateStepsPerMinute,omitempty"`
	Connections        string `json:"connections,omitempty"`
	// Ready and Most are the virtual users of an open model.
	Ready int `json:"preAllocatedVirtualUsers,omitempty"`
	Most  int `json:"maxVirtualUsers,omitempty"`
}

// closed is the default model.
var closed model

type plan struct {
	Format             string     `json:"format"`
	ID                 string     `json:"id"`
	Provider           string     `json:"provider"`
	BaseURL            string     `json:"baseURL"`
	Host               string     `json:"host"`
	ForwardAuthHost    string     `json:"forwardAuthHost,omitempty"`
	MaxDurationSeconds int        `json:"maxDurationSeconds"`
	Pods               int        `json:"pods,omitempty"`
	Scenarios          []scenario `json:"scenarios"`
	// client of OpenID Connect, which goes to the credentials.
	client map[string]string
}

func authentikPlan(baseURL string, scenarios ...scenario) plan {
	return plan{Format: "authstack.dev/plan/v1", ID: "test-1-1", Provider: "authentik", BaseURL: baseURL,
		Host: "sso.example.test", MaxDurationSeconds: 60, Scenarios: scenarios}
}

// scriptOf is one of the real scripts, for a test that replaces a part of it.
func scriptOf(t *testing.T, path string) string {
	t.Helper()
	text, ok := scenarios.Scripts()[path]
	if !ok {
		t.Fatalf("there is no script %s", path)
	}
	return text
}

// outcome of a run of the binary.
type outcome struct {
	exitCode int
	output   string
	run      *result.Run
	readErr  error
	// memory is the most that k6 held, in bytes.
	memory int64
}

// runK6 runs the real scripts (with some replaced) the way the Job does.
func runK6(t *testing.T, p plan, password string, replaced map[string]string, env ...string) outcome {
	t.Helper()
	return runEntry(t, scenarios.Main, nil, p, password, replaced, env...)
}

// runEntry is runK6 with the script that k6 is given and further arguments.
func runEntry(t *testing.T, entry string, arguments []string, p plan, password string, replaced map[string]string, env ...string) outcome {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range scenarios.Scripts() {
		write(path, text)
	}
	p.Scenarios = slices.Clone(p.Scenarios)
	for i := range p.Scenarios {
		if s := &p.Scenarios[i]; s.RatePerMinute > 0 || s.RateStepsPerMinute != nil {
			s.Ready, s.Most = 100, 600
		}
	}
	planText, _ := json.Marshal(p)
	write("plan.json", string(planText))
	held := map[string]any{"users": []map[string]string{{"username": canaryUser, "password": password}}}
	if p.client != nil {
		held["oidc"] = p.client
	}
	credentials, _ := json.Marshal(held)
	write("credentials.json", string(credentials))
	for path, text := range replaced {
		write(path, text)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	arguments = append(append([]string{"run", "--quiet", "--no-color", "--out", "authstack"}, arguments...), filepath.Join(dir, entry))
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Env = append(os.Environ(),
		"AUTHSTACK_PLAN="+filepath.Join(dir, "plan.json"), "AUTHSTACK_CREDENTIALS="+filepath.Join(dir, "credentials.json"),
		"HOME="+dir, "K6_SUMMARY_MODE=disabled", "K6_NO_THRESHOLDS=true", "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false")
	if entry == scenarios.Own {
		command.Env = append(command.Env, scriptVariable+"="+filepath.Join(dir, scenarios.User))
	}
	command.Env = append(command.Env, env...)
	// One stream for both, as the kubelet keeps them.
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	peak, ended := make(chan int64), make(chan struct{})
	go func() { peak <- highWater(command.Process.Pid, ended) }()
	err := command.Wait()
	close(ended)
	memory := <-peak
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	out := outcome{exitCode: command.ProcessState.ExitCode(), output: output.String(), memory: memory}
	out.run, out.readErr = result.Read(strings.NewReader(out.output))
	for _, secret := range []string{password, canaryUser, canarySecret, "authentik_session", "session-"} {
		if strings.Contains(out.output, secret) {
			t.Errorf("the output holds %q:\n%s", secret, out.output)
		}
		// The frame is packed; what is in it must not hold secrets either.
		if text, _ := json.Marshal(out.run); strings.Contains(string(text), secret) {
			t.Errorf("the result holds %q", secret)
		}
	}
	return out
}

// highWater is the most memory that a process held, in bytes, as far as it was seen until it ended. The kernel's account of
// an ended child will not do: it includes what the process that started it held.
func highWater(pid int, ended <-chan struct{}) (most int64) {
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if found := residentPeak.FindSubmatch(status); found != nil {
			kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
			most = kilobytes << 10
		}
		select {
		case <-ended:
			return most
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var residentPeak = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// must fails the test where there is no result.
func (o outcome) must(t *testing.T, exitCode int) *result.Run {
	t.Helper()
	if o.readErr != nil || o.exitCode != exitCode {
		t.Fatalf("exit code %d (want %d), %v:\n%s", o.exitCode, exitCode, o.readErr, o.output)
	}
	return o.run
}

// wantCounts checks requests, failed requests and warm-up requests of each endpoint.
func wantCounts(t *testing.T, run *result.Run, scenario string, want map[string][3]int64) {
	t.Helper()
	got := map[string][3]int64{}
	for _, s := range run.Series {
		if s.Scenario == scenario {
			got[s.Endpoint] = [3]int64{s.Requests, s.Failed(), s.WarmUpRequests}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s has {requests, failed, warm-up}\n%v, want\n%v", scenario, got, want)
	}
}

func TestLoginAndDashboardOfAuthentik(t *testing.T) {
	fake := &fakeAuthentik{t: t, passwordDelay: 60 * time.Millisecond}
	server := fake.start()
	run := runK6(t, authentikPlan(server.URL, scenario{"Login", 20, 5, 2, closed}, scenario{"Dashboard", 6, 2, 1, closed}), canaryPassword, nil).must(t, 0)

	login := [3]int64{20, 0, 5}
	wantCounts(t, run, "Login", map[string][3]int64{"login": login, "identification-get": login, "identification-post": login,
		"password-get": login, "password-post": login, "mfa-get": login, "login-get": login})
	wantCounts(t, run, "Dashboard", map[string][3]int64{"dashboard-sequential": {6, 0, 2}, "dashboard-parallel": {6, 0, 2},
		"applications-sequential": {48, 0, 16}, "applications-parallel": {48, 0, 16}})
	if n := fake.logins.Load(); n != 26 {
		t.Errorf("%d logins, want 25 of Login and one of the dashboard's virtual user", n)
	}
	if n := fake.maxInFlight.Load(); n != 8 {
		t.Errorf("%d requests at once, want 8", n)
	}
	if len(fake.problems) > 0 {
		t.Errorf("the fake was asked what a real one would not be: %q", fake.problems)
	}
	for endpoint, least := range map[string]int64{"password-post": 60_000, "login": 60_000} {
		s := run.Find("Login", endpoint)
		if p50 := s.Total.PerMille(500); p50 < least || p50 > least+100_000 {
			t.Errorf("p50 of %s is %d µs, want at least %d", endpoint, p50, least)
		}
	}
	if p50 := run.Find("Login", "password-get").Total.PerMille(500); p50 > 60_000 {
		t.Errorf("password-get took %d µs: the delay of password-post was counted to it", p50)
	}
	sequential, parallel := run.Find("Dashboard", "dashboard-sequential"), run.Find("Dashboard", "dashboard-parallel")
	if !sequential.Whole || sequential.Total.Min() < 80_000 || parallel.Total.Min() < 10_000 || parallel.Total.PerMille(500) > 70_000 {
		t.Errorf("eight lists of 10 ms took %d µs in sequence, %d in parallel", sequential.Total.Min(), parallel.Total.PerMille(500))
	}
	if s := run.Find("Login", "identification-get"); s.Connect.Count() != 0 || s.Wait.Count() != 20 || s.LastMicros <= s.FirstMicros {
		t.Errorf("identification-get has %d connects (all in the warm-up), %d waits, span %d to %d", s.Connect.Count(), s.Wait.Count(), s.FirstMicros, s.LastMicros)
	}
	if run.PlanID != "test-1-1" || run.Generator.WallMicros == 0 || run.Generator.CPUMicros == 0 || !strings.HasPrefix(run.Generator.K6Version, "v2.") {
		t.Errorf("plan id %q, generator %+v", run.PlanID, run.Generator)
	}
	// One scenario after the other: the dashboard begins when the last login has ended.
	if last, first := run.Find("Login", "login").LastMicros, run.Find("Dashboard", "dashboard-sequential").FirstMicros; first < last {
		t.Errorf("the dashboard began at %d µs, the logins ended at %d", first, last)
	}
}

func TestLoginWithThePasswordBesideTheName(t *testing.T) {
	fake := &fakeAuthentik{t: t, embedded: true}
	run := runK6(t, authentikPlan(fake.start().URL, scenario{"Login", 3, 0, 1, closed}), canaryPassword, nil).must(t, 0)
	three := [3]int64{3, 0, 0}
	wantCounts(t, run, "Login", map[string][3]int64{"login": three, "identification-get": three, "identification-post": three, "mfa-get": three, "login-get": three})
}

func TestLoginAndForwardAuthOfAuthelia(t *testing.T) {
	fake := &fakeAuthelia{t: t}
	p := authentikPlan(fake.start().URL, scenario{"Login", 10, 2, 1, closed}, scenario{"ForwardAuth", 40, 10, 1, closed})
	p.Provider, p.ForwardAuthHost = "authelia", "app.example.test"
	run := runK6(t, p, canaryPassword, nil).must(t, 0)
	wantCounts(t, run, "Login", map[string][3]int64{"login": {10, 0, 2}, "firstfactor": {10, 0, 2}})
	wantCounts(t, run, "ForwardAuth", map[string][3]int64{"authorised": {40, 0, 10}, "unauthorised": {40, 0, 10},
		"first-sight": {4, 0, 1}, "unauthorised-no-cookie": {4, 0, 1}})
	if len(fake.problems) > 0 {
		t.Errorf("the fake was asked what a real one would not be: %q", fake.problems)
	}
	if want := 12 + 5 + 5; fake.made != want {
		t.Errorf("%d sessions were made, want %d: of 12 logins, 5 first sights, 5 without a cookie", fake.made, want)
	}
}

// expired is a certificate of 127.0.0.1 that was valid until yesterday.
func expired(t *testing.T) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().AddDate(0, -3, 0), NotAfter: time.Now().AddDate(0, 0, -1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestFailures(t *testing.T) {
	t.Run("a wrong password is a wrong answer and never a figure", func(t *testing.T) {
		fake := &fakeAuthentik{t: t}
		run := runK6(t, authentikPlan(fake.start().URL, scenario{"Login", 4, 1, 1, closed}), "wrong-password-77ab", nil).must(t, 0)
		s := run.Find("Login", "login")
		if s.Wrong != 4 || s.Unanswered != 0 || s.Total.Count() != 0 || len(s.Failures) != 1 || s.Failures[0] != (result.Failure{Kind: "input refused", Count: 5}) {
			t.Errorf("login: %+v", s)
		}
	})
	t.Run("a server that begins to answer 500 is counted from then on", func(t *testing.T) {
		fake := &fakeAuthentik{t: t, breakAfter: 60}
		run := runK6(t, authentikPlan(fake.start().URL, scenario{"Login", 20, 0, 1, closed}), canaryPassword, nil).must(t, 0)
		wantCounts(t, run, "Login", map[string][3]int64{"login": {20, 10, 0}, "identification-get": {20, 10, 0}, "identification-post": {10, 0, 0},
			"password-get": {10, 0, 0}, "password-post": {10, 0, 0}, "mfa-get": {10, 0, 0}, "login-get": {10, 0, 0}})
		if f := run.Find("Login", "login").Failures; len(f) != 1 || f[0].Kind != "status 500" {
			t.Errorf("failures: %v", f)
		}
	})
	t.Run("a target that is not there ends the test early with a result", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		run := runK6(t, authentikPlan("http://"+listener.Addr().String(), scenario{"Login", 60, 0, 1, closed}), canaryPassword, nil).must(t, 108)
		if s := run.Find("Login", "login"); s.Requests != 10 || s.Unanswered != 10 || !strings.Contains(run.StopError, "no answer from the target") {
			t.Errorf("login: %+v, stopped by %q", s, run.StopError)
		}
	})
	for sentence, certificate := range map[string]*tls.Certificate{
		"the certificate has expired or is not yet valid": expired(t),
		"the certificate is not trusted":                  nil, // httptest's own, which nobody has signed
	} {
		t.Run(sentence, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			if certificate != nil {
				server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
			}
			server.StartTLS()
			defer server.Close()
			run := runK6(t, authentikPlan(server.URL, scenario{"Login", 60, 0, 1, closed}), canaryPassword, nil).must(t, 108)
			want := "no answer (" + sentence + ")"
			if s := run.Find("Login", "login"); len(s.Failures) != 1 || s.Failures[0].Kind != want || s.Unanswered != 10 || !strings.Contains(run.StopError, want) {
				t.Errorf("login: %+v, stopped by %q", s, run.StopError)
			}
			if certificate != nil {
				want = "no answer (error 1000 of k6)"
			}
			own := runScript(t, scriptPlan(server.URL), "import http from 'k6/http'; import { baseURL } from './lib/stack.js';\nexport default function () { http.get(baseURL); }").must(t, 0)
			if s := own.Find("Script", untagged); len(s.Failures) != 1 || s.Failures[0].Kind != want || s.Unanswered != 8 {
				t.Errorf("a script of one's own: %+v", s)
			}
		})
	}
	t.Run("a script with a syntax error gives exit code 107 and no result", func(t *testing.T) {
		out := runK6(t, authentikPlan("http://127.0.0.1:1", scenario{"Login", 1, 0, 1, closed}), canaryPassword, map[string]string{"login.js": "export const options = {"})
		if out.exitCode != 107 || !errors.Is(out.readErr, result.ErrNoResult) {
			t.Errorf("exit code %d, %v", out.exitCode, out.readErr)
		}
	})
	t.Run("k6 has room within the smallest memory limit that a LatencyTest takes", func(t *testing.T) {
		// With the limit of the heap that its Pod gives it (internal/latency/objects.go).
		out := runK6(t, authentikPlan((&fakeAuthentik{t: t}).start().URL, scenario{"Login", 60, 6, 1, closed}), canaryPassword, nil, fmt.Sprintf("GOMEMLIMIT=%d", 64<<20/10*9))
		out.must(t, 0)
		t.Logf("60 logins of one virtual user: %d MiB", out.memory>>20)
		if out.memory == 0 || out.memory >= 64<<20 {
			t.Errorf("k6 held %d bytes", out.memory)
		}
	})
	t.Run("a script that throws is counted, since k6 itself would go on", func(t *testing.T) {
		broken := strings.Replace(scriptOf(t, "lib/authentik.js"), "export function login(", "export function login() { throw new Error('oops'); }\nfunction unbroken(", 1)
		run := runK6(t, authentikPlan("http://127.0.0.1:1", scenario{"Login", 3, 0, 1, closed}), canaryPassword, map[string]string{"lib/authentik.js": broken}).must(t, 0)
		if f := run.Find("Login", "login").Failures; len(f) != 1 || f[0] != (result.Failure{Kind: "script error", Count: 3}) {
			t.Errorf("failures: %v", f)
		}
	})
	t.Run("a run that is too slow stops by itself and counts what was dropped", func(t *testing.T) {
		fake := &fakeAuthentik{t: t, passwordDelay: 900 * time.Millisecond}
		p := authentikPlan(fake.start().URL, scenario{"Login", 60, 0, 1, closed})
		p.MaxDurationSeconds = 1
		run := runK6(t, p, canaryPassword, nil).must(t, 0)
		if s := run.Scenarios[0]; s.DroppedIterations == 0 || s.Iterations == 0 || s.DroppedIterations+s.Iterations > 60 {
			t.Errorf("scenario: %+v", s)
		}
	})
	t.Run("credentials that are no JSON are not quoted", func(t *testing.T) {
		out := runK6(t, authentikPlan("http://127.0.0.1:1", scenario{"Login", 1, 0, 1, closed}), canaryPassword, map[string]string{
			"credentials.json": `{"users": [{"password": "` + canaryPassword + `",,`})
		if out.exitCode != 107 || !strings.Contains(out.output, "credentials.json") || strings.Contains(out.output, canaryPassword) {
			t.Errorf("exit code %d:\n%s", out.exitCode, out.output)
		}
	})
}
