// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	canaryUser     = "canary-user"
	canaryPassword = "canary-password-3f9c"
)

// fakeAuthentik keeps the contract of authentik's flow executor (facts: website/docs of the flow
// executor, and measured on 2025.12.4) with a known delay on one request.
type fakeAuthentik struct {
	t *testing.T
	// passwordDelay is added to POST password.
	passwordDelay time.Duration
	// embedded asks for the password beside the name.
	embedded bool
	// breakAfter answers 500 from that request on; 0 never.
	breakAfter int64

	requests, made, logins, lists, inFlight, maxInFlight atomic.Int64
	mu                                                   sync.Mutex
	sessions                                             map[string]string
	problems                                             []string
}

func (f *fakeAuthentik) start() *httptest.Server {
	f.sessions = map[string]string{}
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	return server
}

// complain notes a request that a real authentik behind a proxy would not have got.
func (f *fakeAuthentik) complain(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
}

func (f *fakeAuthentik) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := f.requests.Add(1); f.breakAfter > 0 && n > f.breakAfter {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	if r.Host != "sso.example.test" || r.Header.Get("X-Forwarded-Proto") != "https" || r.Header.Get("X-Forwarded-Host") != r.Host {
		f.complain("%s %s came for host %q over %q", r.Method, r.URL.Path, r.Host, r.Header.Get("X-Forwarded-Proto"))
	}
	if n := len(r.Cookies()); n > 1 {
		f.complain("%s %s has %d cookies", r.Method, r.URL.Path, n)
	}
	switch r.URL.Path {
	case "/api/v3/flows/executor/default-authentication-flow/":
		f.executor(w, r)
	case "/api/v3/core/applications/":
		f.applications(w, r)
	default:
		http.NotFound(w, r)
	}
}

// executor: the state of a session is the stage that it stands at.
func (f *fakeAuthentik) executor(w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("query") {
		f.complain("the executor was asked without ?query=")
	}
	id, stage := f.session(r)
	if id == "" {
		id, stage = fmt.Sprintf("s%d", f.made.Add(1)), "identification"
	}
	answer := func(stage string, body map[string]any) {
		// Each answer gives out another session id, as a product that rotates its cookie does.
		next := id + "x"
		f.mu.Lock()
		delete(f.sessions, id)
		f.sessions[next] = stage
		f.mu.Unlock()
		http.SetCookie(w, &http.Cookie{Name: "authentik_session", Value: next, Path: "/", Secure: true, HttpOnly: true})
		if body == nil {
			w.Header().Set("Location", r.URL.RequestURI())
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	var sent map[string]any
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || sent["component"] != "ak-stage-"+stage {
			f.complain("stage %s was answered with %v", stage, sent["component"])
		}
	}
	refused := map[string]any{"component": "ak-stage-" + stage, "response_errors": map[string]any{"password": []string{"x"}}}
	switch {
	case stage == "identification" && sent == nil:
		answer(stage, map[string]any{"component": "ak-stage-identification", "password_fields": f.embedded})
	case stage == "identification" && f.embedded && sent["password"] != canaryPassword:
		answer(stage, refused)
	case stage == "identification" && f.embedded:
		answer("mfa", nil)
	case stage == "identification":
		if _, has := sent["password"]; has {
			f.complain("the password was sent to a stage that did not ask for it")
		}
		answer("password", nil)
	case stage == "password" && sent == nil:
		answer(stage, map[string]any{"component": "ak-stage-password"})
	case stage == "password":
		time.Sleep(f.passwordDelay)
		if sent["password"] != canaryPassword {
			answer(stage, refused)
			return
		}
		answer("mfa", nil)
	case stage == "mfa":
		answer("login", nil)
	case stage == "login":
		f.logins.Add(1)
		answer("done", map[string]any{"component": "xak-flow-redirect", "to": "/if/user/"})
	}
}

func (f *fakeAuthentik) applications(w http.ResponseWriter, r *http.Request) {
	if _, stage := f.session(r); stage != "done" {
		http.Error(w, "{}", http.StatusForbidden)
		return
	}
	f.lists.Add(1)
	n := f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	for old := f.maxInFlight.Load(); n > old && !f.maxInFlight.CompareAndSwap(old, n); old = f.maxInFlight.Load() {
	}
	time.Sleep(10 * time.Millisecond)
	_, _ = w.Write([]byte(`{"results":[]}`))
}

func (f *fakeAuthentik) session(r *http.Request) (id, stage string) {
	cookie, err := r.Cookie("authentik_session")
	if err != nil {
		return "", ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return cookie.Value, f.sessions[cookie.Value]
}

// fakeAuthelia keeps the contract of Authelia 4.39's first factor and forward-auth check.
type fakeAuthelia struct {
	t        *testing.T
	mu       sync.Mutex
	sessions map[string]bool
	problems []string
	made     int
}

func (f *fakeAuthelia) start() *httptest.Server {
	f.sessions = map[string]bool{}
	server := httptest.NewServer(f)
	f.t.Cleanup(server.Close)
	return server
}

func (f *fakeAuthelia) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	complain := func(format string, args ...any) { f.problems = append(f.problems, fmt.Sprintf(format, args...)) }
	newSession := func(authorised bool) {
		f.made++
		id := fmt.Sprintf("session-%d", f.made)
		f.sessions[id] = authorised
		http.SetCookie(w, &http.Cookie{Name: "authelia_session", Value: id, Domain: "example.test", Path: "/", Secure: true, HttpOnly: true})
	}
	if r.Header.Get("X-Forwarded-Proto") != "https" {
		complain("%s came over %q", r.URL.Path, r.Header.Get("X-Forwarded-Proto"))
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /api/firstfactor":
		if host := r.Header.Get("X-Forwarded-Host"); host != "sso.example.test" {
			complain("the first factor came for %q", host)
		}
		var sent struct{ Username, Password string }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if sent.Username != canaryUser || sent.Password != canaryPassword {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"status":"KO"}`))
			return
		}
		newSession(true)
		_, _ = w.Write([]byte(`{"status":"OK"}`))
	case "GET /api/authz/forward-auth":
		if host := r.Header.Get("X-Forwarded-Host"); host != "app.example.test" {
			complain("the check came for %q", host)
		}
		if r.Header.Get("X-Forwarded-Method") != "GET" || r.Header.Get("X-Forwarded-URI") != "/" {
			complain("the check has not all of its headers")
		}
		cookie, err := r.Cookie("authelia_session")
		switch {
		case err != nil:
			newSession(false)
			w.WriteHeader(http.StatusFound)
		case f.sessions[cookie.Value]:
			w.WriteHeader(http.StatusOK)
		default:
			w.WriteHeader(http.StatusFound)
		}
	default:
		http.NotFound(w, r)
	}
}
