// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"authstack.dev/authstack/internal/confinement"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/loadtests/scenarios"
)

// runScript runs a user's own script the way the Job does: confined to the address of the plan.
func runScript(t *testing.T, p plan, script string) outcome {
	t.Helper()
	address := netip.MustParseAddrPort(p.BaseURL[strings.LastIndex(p.BaseURL, "/")+1:]).Addr()
	return runEntry(t, scenarios.Own, confinement.Flags(address), p, canaryPassword, map[string]string{scenarios.User: script})
}

// scriptPlan is a run of 8 iterations after 2 of warm-up against an address.
func scriptPlan(baseURL string) plan {
	return authentikPlan(baseURL, scenario{"Script", 8, 2, 1, closed})
}

// elsewhereServer listens on another loopback address than the test's target and counts who comes.
func elsewhereServer(t *testing.T) (url string, reached *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	reached = &atomic.Int64{}
	server := &httptest.Server{Listener: &countedListener{Listener: listener, count: reached}, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("export default 1")) })}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, reached
}

type countedListener struct {
	net.Listener
	count *atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.count.Add(1)
	}
	return conn, err
}

func TestCausesHaveTheSameWordsInScriptsAndInTheOutput(t *testing.T) {
	words := map[string]string{}
	for _, cause := range regexp.MustCompile(`(?m)^  (\d{4}): '(.+)',$`).FindAllStringSubmatch(scriptOf(t, "lib/record.js"), -1) {
		words[cause[1]] = cause[2]
	}
	if !maps.Equal(words, causes) {
		t.Errorf("record.js says %v, trail.go %v", words, causes)
	}
}

func TestOwnScriptIsMeasuredByEndpoint(t *testing.T) {
	fake := &fakeAuthentik{t: t, passwordDelay: 20 * time.Millisecond}
	script := `
import http from 'k6/http';
import { check } from 'k6';
import { baseURL, browser, headers, host, login, ok, provider, user } from './lib/stack.js';

export const options = { vus: 7, iterations: 700, thresholds: { http_req_duration: ['p(95)<1'] } };
export function setup() {
  http.get(baseURL + '/nothing', { headers });
  return { prepared: host };
}
export default function (data) {
  const b = browser();
  if (login(b) !== ok) throw new Error('no login for ' + user().username.length);
  const cookies = b.cookieHeader(host);
  const all = Object.assign({ Cookie: cookies }, headers);
  const list = http.get(baseURL + '/api/v3/core/applications/', { headers: all, tags: { endpoint: 'applications' } });
  check(list, { 'a list came': (r) => r.json('results').length === 0, 'set up': () => data.prepared === 'sso.example.test' && provider === 'authentik' });
  http.get(baseURL + '/missing', { headers: all, tags: { name: 'missing' } });
  http.get(baseURL + '/missing?token=x', { headers: all, responseCallback: http.expectedStatuses(404) });
  b.record('again', b.send('GET', '/api/v3/core/applications/'), (r) => (r.status === 200 ? '' : 'status ' + r.status));
}`
	run := runScript(t, scriptPlan(fake.start().URL), script).must(t, 0)
	wantCounts(t, run, "Script", map[string][3]int64{"script": {8, 0, 2}, "applications": {8, 0, 2}, "missing": {8, 8, 2}, "request": {8, 0, 2}, "again": {8, 0, 2}})
	if run.ScriptDigest != result.Digest([]byte(script)) {
		t.Errorf("the digest is %s", run.ScriptDigest)
	}
	whole, one := run.Find("Script", "script"), run.Find("Script", "applications")
	if !whole.Whole || one.Whole || whole.Total.Min() < 30_000 || one.Total.Min() < 10_000 || one.Wait.Count() != 8 {
		t.Errorf("the whole took %d µs, the list %d, %d waits", whole.Total.Min(), one.Total.Min(), one.Wait.Count())
	}
	if f := run.Find("Script", "missing").Failures; len(f) != 1 || f[0].Kind != "status 404" {
		t.Errorf("failures of missing: %v", f)
	}
	checks := fmt.Sprint(run.Scenarios[0].Checks)
	if len(run.Scenarios) != 1 || checks != "[{a list came 10 0} {set up 10 0} {the login left a session cookie 10 0}]" {
		t.Errorf("%d scenarios, checks %s", len(run.Scenarios), checks)
	}
	if len(fake.problems) > 0 {
		t.Errorf("the fake was asked what a real one would not be: %q", fake.problems)
	}
}

// TestTheSampleScript: what the documentation shows does what it says.
func TestTheSampleScript(t *testing.T) {
	script, err := os.ReadFile("../../config/samples/script.js")
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeAuthentik{t: t}
	run := runScript(t, scriptPlan(fake.start().URL), string(script)).must(t, 0)
	wantCounts(t, run, "Script", map[string][3]int64{"script": {8, 0, 2}, "search": {32, 0, 8}})
	if n := fake.logins.Load(); n != 1 || len(fake.problems) > 0 {
		t.Errorf("%d logins, want one of the virtual user; %q", n, fake.problems)
	}
}

func TestOwnScriptInAnOpenModelThatIsAsynchronous(t *testing.T) {
	fake := &fakeAuthentik{t: t}
	p := scriptPlan(fake.start().URL)
	p.Scenarios[0].RatePerMinute = 1200
	run := runScript(t, p, `
import http from 'k6/http';
import { baseURL, headers, ok, wrong } from './lib/stack.js';
export default async function () {
  const res = await http.asyncRequest('GET', baseURL + '/nothing', null, { headers, tags: { endpoint: 'nothing' } });
  return res.status === 404 ? wrong('there is nothing') : ok;
}`).must(t, 0)
	// k6 runs an open model for a second at least.
	for _, endpoint := range []string{"script", "nothing"} {
		if s := run.Find("Script", endpoint); s.Requests < 8 || s.Wrong != s.Requests || s.WarmUpRequests != 2 {
			t.Errorf("%s: %d requests, %d wrong, %d of warm-up", endpoint, s.Requests, s.Wrong, s.WarmUpRequests)
		}
	}
	if f := run.Find("Script", "script").Failures; len(f) != 1 || f[0].Kind != "there is nothing" {
		t.Errorf("failures: %v", f)
	}
}

// TestOwnScriptReachesNothingElse: by whatever module, name or address.
func TestOwnScriptReachesNothingElse(t *testing.T) {
	elsewhere, reached := elsewhereServer(t)
	port := elsewhere[strings.LastIndex(elsewhere, ":")+1:]
	iteration := func(imports, body string) string {
		return imports + "\nimport { baseURL, headers } from './lib/stack.js';\nexport default function () {\n" +
			"http.get(baseURL + '/nothing', { headers, responseCallback: null });\n" + body + "\n}"
	}
	const plain = "import http from 'k6/http';"
	for name, script := range map[string]string{
		"an address by k6/http":                iteration(plain, "http.get('"+elsewhere+"/', { tags: { endpoint: 'out' } });"),
		"an address in IPv6's notation":        iteration(plain, "http.get('http://[::ffff:127.0.0.2]:"+port+"/', { tags: { endpoint: 'out' } });"),
		"a name":                               iteration(plain, "http.get('http://localhost:"+port+"/', { tags: { endpoint: 'out' } });"),
		"an address by a batch":                iteration(plain, "http.batch([['GET', '"+elsewhere+"/', null, { tags: { endpoint: 'out' } }]]);"),
		"options of its own for the addresses": iteration(plain+"import { plan } from './lib/plan.js'; plan.blacklistIPs = [];", "http.get('"+elsewhere+"/', { tags: { endpoint: 'out' } });"),
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.NotFoundHandler())
			defer server.Close()
			run := runScript(t, scriptPlan(server.URL), script).must(t, 0)
			s := run.Find("Script", "out")
			if s == nil || s.Wrong != 8 || len(s.Failures) != 1 || s.Failures[0].Kind != result.FailureElsewhere {
				t.Errorf("it has %+v", s)
			}
			if r := run.Find("Script", "request"); r.Requests != 8 || r.Failed() != 0 {
				t.Errorf("the stack itself: %+v", r)
			}
		})
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections came through", n)
	}
}

// TestOwnScriptThatIsRefused: before anything runs, with a sentence.
func TestOwnScriptThatIsRefused(t *testing.T) {
	elsewhere, reached := elsewhereServer(t)
	tls := strings.Replace(elsewhere, "http:", "https:", 1)
	const runs = "\nexport default function () {}"
	for name, test := range map[string]struct{ script, says string }{
		"a syntax error":                {"export default function () {\n  const = 1;\n}", "user.js"},
		"no default function":           {"export function other() {}", "write export default function"},
		"hosts of its own":              {"export const options = { hosts: { 'a.example.com': '127.0.0.2' } };" + runs, "options.hosts"},
		"a blacklist of its own":        {"export const options = { blacklistIPs: [] };" + runs, "options.blacklistIPs"},
		"a log of every request":        {"export const options = { httpDebug: 'full' };" + runs, "options.httpDebug"},
		"a setup that is no function":   {"export const setup = 1;" + runs, "exports setup"},
		"a browser":                     {"import { browser } from 'k6/browser';" + runs, "k6/browser: a browser cannot be held"},
		"gRPC":                          {"import grpc from 'k6/net/grpc';" + runs, "k6/net/grpc: neither"},
		"an extension":                  {"import x from 'k6/x/redis';" + runs, "k6/x/redis"},
		"a WebSocket":                   {"import ws from 'k6/ws';" + runs, "k6/ws: WebSockets are not measured"},
		"another WebSocket":             {"import { WebSocket } from 'k6/websockets';" + runs, "k6/websockets: WebSockets are not measured"},
		"the old name of that":          {"import { WebSocket } from 'k6/experimental/websockets';" + runs, "WebSockets are not measured"},
		"an import from a URL":          {"import x from '" + tls + "/x.js';" + runs, "cannot import from 127.0.0.2"},
		"a require of a URL":            {"require('" + tls + "/x.js');" + runs, "cannot import from 127.0.0.2"},
		"an import from a plain URL":    {"import x from '" + elsewhere + "/x.js';" + runs, "only supported schemes"},
		"a request before it begins":    {"import http from 'k6/http'; http.get('" + elsewhere + "/');" + runs, "init context"},
		"an error that quotes a secret": {"import { users } from './lib/plan.js'; throw new Error('got ' + users[0].password);" + runs, "got [redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			out := runScript(t, scriptPlan("http://127.0.0.1:1"), test.script)
			if out.exitCode != 107 || !strings.Contains(out.output, test.says) {
				t.Errorf("exit code %d; it must say %q:\n%s", out.exitCode, test.says, out.output)
			}
		})
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections came through", n)
	}
}

// TestOwnScriptCannotTellItsPasswords: wherever it puts them; runEntry looks for them in log and result.
func TestOwnScriptCannotTellItsPasswords(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	run := runScript(t, scriptPlan(server.URL), `
import http from 'k6/http';
import { check } from 'k6';
import { baseURL, headers, user, wrong } from './lib/stack.js';
import { Trend } from 'k6/metrics';
const trend = new Trend('authstack_request', true), own = new Trend('own', true), other = new Trend('other');
export default function () {
  const secret = user().password;
  console.log(secret); console.error('it is ' + secret);
  http.get(baseURL + '/?' + secret, { headers, tags: { endpoint: secret } });
  http.get('http://127.0.0.3/?password=' + secret, { tags: { name: secret } });
  trend.add(1, { endpoint: 'mine', outcome: 'wrong', failure: 'wrong: ' + secret });
  check(1, { [secret + ' is it']: () => false });
  check(1, { 'by a tag of k6': () => true }, { scenario: secret });
  http.get(baseURL + '/', { headers, tags: { scenario: 'of ' + secret } });
  own.add(1, { scenario: secret, phase: secret }); other.add(1, { scenario: secret + secret });
  if (__ITER % 2) throw new Error('failed with ' + secret);
  return wrong('the password was ' + secret);
}`).must(t, 0)
	if s := run.Find("Script", hidden); s == nil || s.Requests != 16 {
		t.Errorf("the endpoint that is a secret: %+v", s)
	}
	whole := fmt.Sprint(run.Find("Script", "script").Failures)
	if !strings.Contains(whole, "the password was [redacted]") || !strings.Contains(whole, result.FailureScript+": failed with [redacted]") {
		t.Errorf("failures: %s", whole)
	}
}
