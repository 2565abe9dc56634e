package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"authstack.dev/authstack/hack/doubles/internal/testenv"
	"authstack.dev/authstack/internal/idp"
	"authstack.dev/authstack/internal/result"
	"authstack.dev/authstack/loadtests/scenarios"
)

// TestScenarios runs the k6 scenarios against the double on a real PostgreSQL, with users and an application that the
// operator's own edge to the admin API made, and removes both again.
func TestScenarios(t *testing.T) {
	k6 := buildK6(t)
	bin, pg := testenv.Build(t, "authentik"), testenv.StartPostgres(t)
	type size map[string]any
	forwardAuth := size{"name": "ForwardAuth", "iterations": 40, "warmUpIterations": 10, "virtualUsers": 1}
	openID := size{"name": "OIDC", "iterations": 6, "warmUpIterations": 1, "virtualUsers": 1}
	for version, sizes := range map[string][]size{
		"2025.12.4": {{"name": "Login", "iterations": 3, "warmUpIterations": 1, "virtualUsers": 1}, {"name": "Dashboard", "iterations": 2, "warmUpIterations": 1, "virtualUsers": 1}, forwardAuth, openID},
		"2026.8.3":  {forwardAuth, openID},
	} {
		t.Run(version, func(t *testing.T) {
			s := startAuthentik(t, bin, pg, "scenarios"+strings.ReplaceAll(version, ".", ""), version)
			s.workerProc.Stop() // its tasks are none of the matter here
			api := &idp.Authentik{BaseURL: s.url, Token: token}
			app := idp.ForwardAuth{Name: "authstack-latency-0123456789", Host: "authstack-latency-0123456789.example.com", Portal: "https://sso.example.com"}
			client := idp.OIDC{Name: app.Name + "-oidc", ClientID: app.Name + "-oidc", ClientSecret: "a-secret-of-the-test", RedirectURI: "https://" + app.Name + "-oidc.example.com/callback"}
			const user, password = "authstack-latency-0123456789-1", "a-password-of-the-test"
			if err := api.EnsureUser(t.Context(), user, password); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time as an operator that starts anew
				testenv.Until(t, "the outpost", func() error { return api.EnsureForwardAuth(t.Context(), app) })
				if err := api.EnsureOIDC(t.Context(), client); err != nil {
					t.Fatal(err)
				}
			}
			run := runScenarios(t, k6, map[string]any{"format": "authstack.dev/plan/v1", "id": "t-1-1", "provider": "authentik", "baseURL": s.url, "host": "sso.example.com",
				"forwardAuthHost": app.Host, "maxDurationSeconds": 600, "scenarios": sizes}, user, password, &client)
			for _, x := range []struct {
				scenario, endpoint string
				requests           int64
			}{{"Login", "login", 3}, {"Login", "mfa-get", 3}, {"Dashboard", "dashboard-parallel", 2}, {"Dashboard", "applications-parallel", 16},
				{"ForwardAuth", "authorised", 40}, {"ForwardAuth", "unauthorised", 40}, {"ForwardAuth", "unauthorised-no-cookie", 4}, {"ForwardAuth", "first-sight", 4},
				{"OIDC", "code-flow", 6}, {"OIDC", "authorization", 6}, {"OIDC", "token", 6}, {"OIDC", "userinfo", 6}, {"OIDC", "refresh", 6}, {"OIDC", "jwks", 6}} {
				if len(sizes) == 2 && x.scenario != "ForwardAuth" && x.scenario != "OIDC" {
					continue
				}
				found := run.Find(x.scenario, x.endpoint)
				if found == nil || found.Requests != x.requests || found.Failed() > 0 {
					t.Errorf("%s/%s: %+v, want %d requests and no failure", x.scenario, x.endpoint, found, x.requests)
				}
			}
			for range 2 {
				if err := errors.Join(api.RemoveForwardAuth(t.Context(), app.Name), api.RemoveOIDC(t.Context(), client.Name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := api.RemoveUsers(t.Context(), user); err != nil {
				t.Fatal(err)
			}
			if err := testenv.Answers(s.url+"/api/v3/core/applications/"+app.Name+"/", http.StatusNotFound, "Authorization", "Bearer "+token)(); err != nil {
				t.Error(err)
			}
		})
	}
}

func buildK6(t *testing.T) string {
	t.Helper()
	k6 := filepath.Join(t.TempDir(), "k6")
	build := exec.Command("go", "build", "-C", "../../../loadtests/k6", "-o", k6, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building k6: %v\n%s", err, out)
	}
	return k6
}

// runScenarios runs the scripts of the repository as the operator's Job does.
func runScenarios(t *testing.T, k6 string, plan map[string]any, user, password string, client *idp.OIDC) *result.Run {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
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
	text, _ := json.Marshal(plan)
	write("plan.json", string(text))
	held := map[string]any{"users": []map[string]string{{"username": user, "password": password}}}
	if client != nil {
		held["oidc"] = map[string]string{"clientID": client.ClientID, "clientSecret": client.ClientSecret, "redirectURI": client.RedirectURI, "application": client.Name}
	}
	text, _ = json.Marshal(held)
	write("credentials.json", string(text))
	cmd := exec.CommandContext(t.Context(), k6, "run", "--quiet", "--no-color", "--out", "authstack", filepath.Join(dir, scenarios.Main))
	cmd.Env = append(os.Environ(), "AUTHSTACK_PLAN="+filepath.Join(dir, "plan.json"), "AUTHSTACK_CREDENTIALS="+filepath.Join(dir, "credentials.json"),
		"HOME="+dir, "K6_SUMMARY_MODE=disabled", "K6_NO_THRESHOLDS=true", "K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("k6: %v\n%s", err, out)
	}
	run, err := result.Read(bytes.NewReader(out))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return run
}
