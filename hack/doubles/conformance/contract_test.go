//go:build contract

package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"authstack.dev/authstack/hack/doubles/conformance"
	"authstack.dev/authstack/hack/doubles/internal/testenv"
	"authstack.dev/authstack/internal/idp"
)

// exchange is a request to the API and its answer, as contract/check.py reads it.
type exchange struct {
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Query    url.Values      `json:"query,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Status   int             `json:"status"`
	Response json.RawMessage `json:"response,omitempty"`
}

// recorder stands before a double and writes down what is asked of its API and what it answers.
func recorder(t *testing.T, to, file string) string {
	t.Helper()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	// Header for header as it came, with the application's Host, which the outpost goes by.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host, r.Out.Header = r.In.Host, r.In.Header.Clone()
	}}
	var lock sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/api/v3/") {
			proxy.ServeHTTP(w, r)
			return
		}
		e := exchange{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query()}
		body, _ := io.ReadAll(r.Body)
		if len(body) > 0 {
			e.Request = body
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		e.Status = answer.Code
		if text := answer.Body.Bytes(); json.Valid(text) {
			e.Response = text
		}
		lock.Lock()
		if err := json.NewEncoder(out).Encode(e); err != nil {
			t.Errorf("%s %s: %v", e.Method, e.Path, err)
		}
		lock.Unlock()
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(func() { server.Close(); _ = out.Close() })
	return server.URL
}

// install puts Python packages into a folder.
func install(t *testing.T, folder string, what ...string) {
	t.Helper()
	args := append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--target", folder}, what...)
	if out, err := exec.Command("python3", args...).CombinedOutput(); err != nil {
		t.Fatalf("python3 %s: %v (on Debian, apt-get install python3-pip)\n%s", strings.Join(args, " "), err, out)
	}
}

// TestContract holds what the operator, the k6 scenarios and the conformance suite ask of authentik's API, and what the
// doubles answer, against the client that authentik publishes for each release: generated from that release's schema.
func TestContract(t *testing.T) {
	k6 := buildK6(t)
	bin, pg := testenv.Build(t, "authentik"), testenv.StartPostgres(t)
	needs := t.TempDir()
	install(t, needs, "--requirement", "../contract/requirements.txt")
	for _, x := range []struct {
		// version is asked, and its answers are looked at: the last of its release on 2026-11-21.
		version string
		redis   bool
		// others must take the same requests.
		others []string
	}{
		{"2025.6.4", true, []string{"2025.2.4", "2025.4.4"}},
		{"2025.8.6", true, nil},
		{"2025.12.6", false, []string{"2025.10.4", "2026.2.7"}},
		{"2026.5.8", false, nil},
		{"2026.8.5", false, nil},
	} {
		t.Run(x.version, func(t *testing.T) {
			var more []string
			if x.redis {
				more = []string{"AUTHENTIK_REDIS__HOST=127.0.0.1", fmt.Sprintf("AUTHENTIK_REDIS__PORT=%d", testenv.StartRedis(t))}
			}
			s := startAuthentik(t, bin, pg, "contract"+strings.ReplaceAll(x.version, ".", ""), x.version, more...)
			s.workerProc.Stop() // its tasks are none of the matter here
			file := filepath.Join(t.TempDir(), "exchanges")
			at := recorder(t, s.url, file)
			run(t, conformance.Options{Product: "authentik", URL: at, Version: x.version, Token: token})
			askEverything(t, at, k6)

			client := t.TempDir()
			install(t, client, "--no-deps", "authentik-client=="+x.version)
			if out, ok := check(client+":"+needs, x.version, file); !ok {
				t.Error(out)
			} else {
				t.Log(out)
			}
			sees(t, client+":"+needs, x.version)
			for _, other := range x.others {
				client := t.TempDir()
				install(t, client, "--no-deps", "authentik-client=="+other)
				if out, ok := check(client+":"+needs, other, file, "requests"); !ok {
					t.Error(out)
				} else {
					t.Log(out)
				}
			}
		})
	}
}

// check runs contract/check.py.
func check(path, version string, args ...string) (string, bool) {
	cmd := exec.Command("python3", append([]string{"../contract/check.py", version}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// sees makes sure that wrong exchanges are called wrong.
func sees(t *testing.T, path, version string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "wrong")
	wrong := `{"method": "GET", "path": "/api/v3/core/user/", "status": 200}
{"method": "PUT", "path": "/api/v3/core/users/", "status": 200}
{"method": "GET", "path": "/api/v3/core/users/", "query": {"folder": ["x"]}, "status": 200, "response": {"results": [{"pk": "one", "nickname": "x"}]}}
{"method": "POST", "path": "/api/v3/core/users/", "request": {"username": "x", "type": "robot"}, "status": 201}
{"method": "GET", "path": "/api/v3/flows/executor/x/", "status": 200, "response": {"component": "ak-stage-riddle"}}
`
	if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	out, ok := check(path, version, file)
	for _, fault := range []string{"core/user/: no such operation", "PUT /api/v3/core/users/: no such operation: GET, POST", "query parameter folder: unknown", "response.results[].nickname: unknown",
		"response.results.0.pk: ", "request.name: Field required", "request.type: ", "response: no component 'ak-stage-riddle'", "5 exchanges, 8 faults"} {
		if ok || !strings.Contains(out, fault) {
			t.Errorf("the check did not complain of %q:\n%s", fault, out)
		}
	}
}

// askEverything makes and removes what the operator makes and removes around a run, and runs the k6 scenarios.
func askEverything(t *testing.T, at, k6 string) {
	t.Helper()
	api := &idp.Authentik{BaseURL: at, Token: token}
	app := idp.ForwardAuth{Name: "authstack-latency-0123456789", Host: "authstack-latency-0123456789.example.com", Portal: "https://sso.example.com"}
	const user, password = "authstack-latency-0123456789-1", "a-password-of-the-test"
	if err := api.EnsureUser(t.Context(), user, password); err != nil {
		t.Fatal(err)
	}
	moved := app
	moved.Host = "elsewhere.example.com"
	for _, each := range []idp.ForwardAuth{moved, app} { // the second time its provider is changed
		testenv.Until(t, "the outpost", func() error { return api.EnsureForwardAuth(t.Context(), each) })
	}
	client := idp.OIDC{Name: app.Name + "-oidc", ClientID: app.Name + "-oidc", ClientSecret: "a-secret-of-the-test", RedirectURI: "https://" + app.Name + "-oidc.example.com/callback"}
	for range 2 { // the second time it is given its secret again
		if err := api.EnsureOIDC(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	runScenarios(t, k6, map[string]any{"format": "authstack.dev/plan/v1", "id": "t-1-1", "provider": "authentik", "baseURL": at, "host": "sso.example.com",
		"forwardAuthHost": app.Host, "maxDurationSeconds": 600, "scenarios": []map[string]any{
			{"name": "Login", "iterations": 1, "warmUpIterations": 1, "virtualUsers": 1}, {"name": "Dashboard", "iterations": 1, "warmUpIterations": 1, "virtualUsers": 1},
			{"name": "ForwardAuth", "iterations": 10, "warmUpIterations": 1, "virtualUsers": 1}, {"name": "OIDC", "iterations": 1, "warmUpIterations": 1, "virtualUsers": 1}}}, user, password, &client)
	if err := api.RemoveOIDC(t.Context(), client.Name); err != nil {
		t.Fatal(err)
	}
	if err := api.RemoveForwardAuth(t.Context(), app.Name); err != nil {
		t.Fatal(err)
	}
	if err := api.RemoveUsers(t.Context(), user); err != nil {
		t.Fatal(err)
	}
}
