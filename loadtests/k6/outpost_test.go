// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const applicationHost = "app.example.test"

// outpost is the embedded outpost of a fakeAuthentik, with the pages of authentik that lead to it: the
// long way through the executor that versions without a silent redirect take, and with the address of
// an outpost that was never told where authentik is.
type outpost struct {
	*fakeAuthentik
	// sessions of the outpost by cookie, and whether somebody is logged in with it.
	seen map[string]bool
	made int
	// refuse ends the authorisation with a stage that no script can pass.
	refuse bool
}

func (o *outpost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	mine := r.Host == applicationHost
	if !mine && !strings.HasPrefix(r.URL.Path, "/application/") && !strings.Contains(r.URL.Path, "implicit-consent") {
		o.fakeAuthentik.ServeHTTP(w, r)
		return
	}
	if r.Header.Get("X-Forwarded-Host") != r.Host || r.Header.Get("X-Forwarded-Proto") != "https" {
		o.complain("%s came for %q forwarded as %q", r.URL.Path, r.Host, r.Header.Get("X-Forwarded-Host"))
	}
	if !mine {
		o.authorise(w, r)
		return
	}
	if _, err := r.Cookie("authentik_session"); err == nil {
		o.complain("%s of the application got authentik's own cookie", r.URL.Path)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := ""
	if cookie, err := r.Cookie("authentik_proxy_0a1b2c3d"); err == nil {
		key = cookie.Value
	}
	keep := func(loggedIn bool) {
		if _, known := o.seen[key]; !known {
			o.made++
			key = fmt.Sprintf("proxy-%d", o.made)
		}
		o.seen[key] = loggedIn
		http.SetCookie(w, &http.Cookie{Name: "authentik_proxy_0a1b2c3d", Value: key, Path: "/", Secure: true, HttpOnly: true, MaxAge: 3600})
	}
	switch r.URL.Path {
	case "/outpost.goauthentik.io/auth/traefik":
		if r.Header.Get("X-Forwarded-Uri") != "/" || r.Header.Get("X-Forwarded-Method") != http.MethodGet {
			o.problems = append(o.problems, "the check has not all of its headers")
		}
		if o.seen[key] {
			w.Header().Set("X-authentik-username", canaryUser)
			return
		}
		keep(false)
		http.Redirect(w, r, "http://localhost:9000/application/o/authorize/?client_id=c&state=s", http.StatusFound)
	case "/outpost.goauthentik.io/start":
		if r.URL.Query().Get("rd") != "https://"+applicationHost+"/" {
			o.problems = append(o.problems, "start got rd="+r.URL.Query().Get("rd"))
		}
		keep(false)
		http.Redirect(w, r, "http://localhost:9000/application/o/authorize/?client_id=c&state=s", http.StatusFound)
	case "/outpost.goauthentik.io/callback":
		if r.URL.Query().Get("code") != "code" || r.URL.Query().Get("X-authentik-auth-callback") != "true" {
			o.problems = append(o.problems, "the callback got "+r.URL.RawQuery)
		}
		keep(true)
		http.Redirect(w, r, "https://"+applicationHost+"/", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func (o *outpost) authorise(w http.ResponseWriter, r *http.Request) {
	if _, stage := o.session(r); stage != "done" {
		http.Redirect(w, r, "/flows/-/default/authentication/?next=/", http.StatusFound)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/application/o/authorize/") {
		http.Redirect(w, r, "/if/flow/default-provider-authorization-implicit-consent/?"+r.URL.RawQuery, http.StatusFound)
		return
	}
	if got := r.URL.Query().Get("query"); got != "client_id=c&state=s" {
		o.complain("the executor of the authorisation got query=%q", got)
	}
	answer := map[string]any{"component": "xak-flow-redirect",
		"to": "https://" + applicationHost + "/outpost.goauthentik.io/callback?X-authentik-auth-callback=true&code=code&state=s"}
	if o.refuse {
		answer = map[string]any{"component": "ak-stage-consent"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func startOutpost(t *testing.T, o *outpost) plan {
	t.Helper()
	o.fakeAuthentik, o.seen = &fakeAuthentik{t: t}, map[string]bool{}
	server := o.start()
	server.Config.Handler = o
	p := authentikPlan(server.URL, scenario{"ForwardAuth", 40, 10, 1, closed})
	p.ForwardAuthHost = applicationHost
	return p
}

func TestForwardAuthOfAuthentik(t *testing.T) {
	o := &outpost{}
	run := runK6(t, startOutpost(t, o), canaryPassword, nil).must(t, 0)
	wantCounts(t, run, "ForwardAuth", map[string][3]int64{"authorised": {40, 0, 10}, "unauthorised": {40, 0, 10},
		"first-sight": {4, 0, 1}, "unauthorised-no-cookie": {4, 0, 1}})
	if len(o.problems) > 0 {
		t.Errorf("the fake was asked what a real one would not be: %q", o.problems)
	}
	if want := 5 + 1 + 5; o.made != want {
		t.Errorf("%d sessions of the outpost were made, want %d: of 5 first sights, the stranger, 5 without a cookie", o.made, want)
	}
	if s := run.Find("ForwardAuth", "first-sight"); !s.Whole {
		t.Error("first-sight is not the sum of its requests")
	}
}

func TestForwardAuthOfAuthentikThatAsksForConsent(t *testing.T) {
	o := &outpost{refuse: true}
	run := runK6(t, startOutpost(t, o), canaryPassword, nil).must(t, 0)
	if f := run.Find("ForwardAuth", "first-sight").Failures; len(f) != 1 || f[0].Kind != "outpost login: ak-stage-consent" {
		t.Errorf("failures: %v", f)
	}
	// A question that could not be asked is still a single one, which failed.
	if s := run.Find("ForwardAuth", "authorised"); s.Whole || s.Requests != 40 || s.Failed() != 40 {
		t.Errorf("authorised: %+v", s)
	}
}
