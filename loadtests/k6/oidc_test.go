// SPDX-License-Identifier: AGPL-3.0-only

package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"authstack.dev/authstack/internal/result"
)

const (
	canarySecret = "canary-client-secret+/%"
	redirectURI  = "https://probe.example.test/callback"
)

// op is an OpenID provider behind the login of one of the fakes, with the pages that authentik 2025.2 to
// 2026.8 and Authelia 4.39 show on the way to a code: none without offline_access, consent with it.
type op struct {
	login http.Handler
	// authelia has it speak as Authelia does, else as authentik.
	authelia bool
	// long is authentik's way through the executor where nothing is asked.
	long bool
	// fault is what goes wrong.
	fault string

	mu       sync.Mutex
	issued   int
	requests map[string]int
	consents int
	asked    url.Values
	codes    map[string]url.Values
	refresh  map[string]bool
	problems []string
}

func (o *op) complain(format string, args ...any) {
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

func (o *op) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	authorization, token, userinfo, jwks := "/application/o/authorize/", "/application/o/token/", "/application/o/userinfo/", "/application/o/probe/jwks/"
	if o.authelia {
		authorization, token, userinfo, jwks = "/api/oidc/authorization", "/api/oidc/token", "/api/oidc/userinfo", "/jwks.json"
	}
	o.mu.Lock()
	switch r.URL.Path {
	case authorization, token, userinfo, jwks, "/api/oidc/consent", "/api/v3/flows/executor/consent-flow/":
	default:
		o.mu.Unlock()
		o.login.ServeHTTP(w, r)
		return
	}
	defer o.mu.Unlock()
	o.requests[r.URL.Path]++
	if r.Host != "sso.example.test" || r.Header.Get("X-Forwarded-Proto") != "https" || r.Header.Get("X-Forwarded-Host") != r.Host {
		o.complain("%s came for %q over %q", r.URL.Path, r.Host, r.Header.Get("X-Forwarded-Proto"))
	}
	_, noSession := r.Cookie(map[bool]string{true: "authelia_session", false: "authentik_session"}[o.authelia])
	switch r.URL.Path {
	case token, userinfo, jwks:
		if noSession == nil {
			o.complain("%s got the browser's cookie", r.URL.Path)
		}
	default:
		if noSession != nil {
			o.complain("%s has no session", r.URL.Path)
		}
	}
	switch r.URL.Path {
	case authorization:
		o.authorize(w, r)
	case "/api/oidc/consent", "/api/v3/flows/executor/consent-flow/":
		o.consent(w, r)
	case token:
		o.token(w, r)
	case userinfo:
		sub := "somebody"
		if o.fault == "userinfo" {
			sub = "else"
		}
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer access-") {
			o.complain("userinfo without an access token")
		}
		reply(w, map[string]any{"sub": sub})
	case jwks:
		kid := "key-1"
		if o.fault == "key" {
			kid = "key-2"
		}
		reply(w, map[string]any{"keys": []any{map[string]any{"kid": kid, "kty": "RSA"}}})
	}
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func (o *op) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case o.fault == "logged out" && o.authelia:
		http.Redirect(w, r, "https://sso.example.test/?flow=openid_connect", http.StatusFound)
	case o.fault == "logged out":
		http.Redirect(w, r, "/flows/-/default/authentication/?next=/", http.StatusFound)
	case o.fault == "client":
		http.Redirect(w, r, "https://sso.example.test/consent/completion?error=invalid_client&error_description=canary+description", http.StatusFound)
	case o.fault == "denied":
		http.Redirect(w, r, redirectURI+"?error=access_denied&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
	case o.authelia && q.Has("consent_id"):
		o.grant(w, r, q)
	case o.authelia && (strings.Contains(q.Get("scope"), "offline_access") || o.fault == "consent"):
		o.asked = q
		http.Redirect(w, r, "https://sso.example.test/consent/openid/decision?flow=openid_connect&flow_id=0a1b-2c", http.StatusFound)
	case !o.authelia && (strings.Contains(q.Get("scope"), "offline_access") || o.long):
		o.asked = q
		http.Redirect(w, r, "/if/flow/consent-flow/?"+r.URL.RawQuery, http.StatusFound)
	default:
		o.grant(w, r, q)
	}
}

// grant sends the browser back with a code.
func (o *op) grant(w http.ResponseWriter, r *http.Request, q url.Values) {
	http.Redirect(w, r, o.back(q), http.StatusFound)
}

func (o *op) back(q url.Values) string {
	if q.Get("redirect_uri") != redirectURI || q.Get("response_type") != "code" || q.Get("client_id") != "probe" || len(q.Get("nonce")) < 8 || q.Get("code_challenge_method") != "S256" {
		o.complain("the authorization was asked for with %v", q)
	}
	o.issued++
	code := fmt.Sprintf("code-%d", o.issued)
	o.codes[code] = q
	state := q.Get("state")
	if o.fault == "state" {
		state = "another"
	}
	return redirectURI + "?code=" + code + "&iss=x&state=" + url.QueryEscape(state)
}

func (o *op) consent(w http.ResponseWriter, r *http.Request) {
	if o.authelia {
		var sent struct {
			FlowID   string `json:"flow_id"`
			ClientID string `json:"client_id"`
			Consent  bool   `json:"consent"`
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if sent.FlowID != "0a1b-2c" || sent.ClientID != "probe" || !sent.Consent {
			o.complain("consent was given as %+v", sent)
		}
		o.consents++
		o.asked.Set("consent_id", sent.FlowID)
		reply(w, map[string]any{"status": "OK", "data": map[string]any{"redirect_uri": "https://sso.example.test/api/oidc/authorization?" + o.asked.Encode()}})
		return
	}
	if r.URL.Query().Get("query") == "" {
		o.complain("the executor was asked without ?query=")
	}
	if o.long && !strings.Contains(o.asked.Get("scope"), "offline_access") {
		reply(w, map[string]any{"component": "xak-flow-redirect", "to": o.back(o.asked)})
		return
	}
	if r.Method == http.MethodGet && o.asked.Get("consent_id") == "" {
		http.SetCookie(w, &http.Cookie{Name: "authentik_csrf", Value: "csrf-1", Path: "/", Secure: true})
		component := "ak-stage-consent"
		if o.fault == "stage" {
			component = "ak-stage-prompt"
		}
		reply(w, map[string]any{"component": component, "token": "consent-1"})
		return
	}
	if r.Method == http.MethodPost {
		var sent map[string]string
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if sent["component"] != "ak-stage-consent" || sent["token"] != "consent-1" || r.Header.Get("X-Authentik-Csrf") != "csrf-1" || r.Header.Get("Origin") != "https://sso.example.test" {
			o.complain("consent was given as %v by %v", sent, r.Header)
		}
		o.consents++
		o.asked.Set("consent_id", "given")
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusFound)
		return
	}
	reply(w, map[string]any{"component": "xak-flow-redirect", "to": o.back(o.asked)})
}

func (o *op) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	if secret, _ = url.QueryUnescape(secret); id != "probe" || secret != canarySecret {
		o.complain("the client showed itself as %q", id)
	}
	_ = r.ParseForm()
	refused := func(code string) {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, map[string]any{"error": code})
	}
	nonce, offline := "", true
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		q, known := o.codes[r.PostFormValue("code")]
		delete(o.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !known || r.PostFormValue("redirect_uri") != redirectURI || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
			refused("invalid_grant")
			return
		}
		nonce, offline = q.Get("nonce"), strings.Contains(q.Get("scope"), "offline_access")
	case "refresh_token":
		token := r.PostFormValue("refresh_token")
		if !o.refresh[token] || o.fault == "refresh" {
			refused("invalid_grant")
			return
		}
		delete(o.refresh, token)
	default:
		refused("unsupported_grant_type")
		return
	}
	o.issued++
	claims := map[string]any{"iss": "https://sso.example.test/application/o/probe/", "aud": "probe", "sub": "somebody", "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix()}
	if o.authelia {
		claims["iss"], claims["aud"] = "https://sso.example.test", []string{"probe"}
	}
	access := fmt.Sprintf("access-%d", o.issued)
	switch o.fault {
	case "issuer":
		claims["iss"] = "https://sso.example.test/"
	case "audience":
		claims["aud"] = "another"
	case "nonce":
		claims["nonce"] = "another"
	case "expired":
		claims["exp"] = time.Now().Add(-time.Hour).Unix()
	case "same":
		access = "access-0"
	}
	payload, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	answer := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": 3600,
		"id_token": encode([]byte(`{"alg":"RS256","kid":"key-1"}`)) + "." + encode(payload) + ".c2lnbmF0dXJl"}
	if offline && o.fault != "no refresh token" {
		token := fmt.Sprintf("refresh-%d", o.issued)
		o.refresh[token] = true
		answer["refresh_token"] = token
	}
	reply(w, answer)
}

// startOP starts a provider and is the plan for it.
func startOP(t *testing.T, o *op, scenarios ...scenario) plan {
	t.Helper()
	o.requests, o.codes, o.refresh = map[string]int{}, map[string]url.Values{}, map[string]bool{}
	var server *httptest.Server
	if o.authelia {
		fake := &fakeAuthelia{t: t}
		server, o.login = fake.start(), fake
	} else {
		fake := &fakeAuthentik{t: t}
		server, o.login = fake.start(), fake
	}
	server.Config.Handler = o
	if len(scenarios) == 0 {
		scenarios = []scenario{{"OIDC", 6, 2, 1, closed}}
	}
	p := authentikPlan(server.URL, scenarios...)
	p.client = map[string]string{"clientID": "probe", "clientSecret": canarySecret, "redirectURI": redirectURI, "application": "probe"}
	if o.authelia {
		p.Provider = "authelia"
		delete(p.client, "application")
	}
	return p
}

func TestOIDC(t *testing.T) {
	for name, row := range map[string]struct {
		op    *op
		whole bool
	}{
		"Authelia":                       {op: &op{authelia: true}},
		"authentik":                      {op: &op{}},
		"authentik through its executor": {op: &op{long: true}, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := runK6(t, startOP(t, row.op), canaryPassword, nil).must(t, 0)
			all := [3]int64{6, 0, 2}
			wantCounts(t, run, "OIDC", map[string][3]int64{"code-flow": all, "authorization": all, "token": all, "userinfo": all, "refresh": all, "jwks": all})
			if len(row.op.problems) > 0 {
				t.Errorf("the fake was asked what a real one would not be: %q", row.op.problems)
			}
			if row.op.consents != 1 {
				t.Errorf("consent was given %d times, want once, before the first refresh", row.op.consents)
			}
			if s := run.Find("OIDC", "authorization"); s.Whole != row.whole {
				t.Errorf("authorization is a sum of requests: %v", s.Whole)
			}
			flow, token := run.Find("OIDC", "code-flow"), run.Find("OIDC", "token")
			if !flow.Whole || token.Whole || flow.Total.PerMille(500) <= token.Total.PerMille(500) {
				t.Errorf("the code flow took %d µs, its token %d", flow.Total.PerMille(500), token.Total.PerMille(500))
			}
		})
	}
	t.Run("an open model, each request on a connection of its own", func(t *testing.T) {
		o := &op{authelia: true}
		run := runK6(t, startOP(t, o, scenario{"OIDC", 10, 5, 1, model{RatePerMinute: 600, Connections: "New"}}), canaryPassword, nil).must(t, 0)
		token := run.Find("OIDC", "token")
		if token.Requests < 9 || token.Failed() > 0 || token.Connect.Count() != token.Total.Count() {
			t.Errorf("%d tokens, %d failed, %d connections", token.Requests, token.Failed(), token.Connect.Count())
		}
		if flow := run.Find("OIDC", "code-flow"); flow.Intended == nil || flow.Intended.Count() == 0 {
			t.Error("the code flow is not counted from its intended start")
		}
	})
	t.Run("without a client", func(t *testing.T) {
		p := startOP(t, &op{})
		p.client = nil
		run := runK6(t, p, canaryPassword, nil).must(t, 0)
		if f := run.Find("OIDC", "code-flow").Failures; len(f) != 1 || f[0].Kind != "script error" {
			t.Errorf("failures: %v", f)
		}
	})
}

// TestWrongAnswersOfOIDC: what comes fast and wrong counts as failed, under the endpoint that gave it.
func TestWrongAnswersOfOIDC(t *testing.T) {
	for fault, row := range map[string]struct {
		authelia       bool
		endpoint, says string
		// flow is whether the code flow fails with it.
		flow bool
	}{
		"issuer":           {endpoint: "token", says: "ID token of another issuer", flow: true},
		"audience":         {endpoint: "token", says: "ID token for another audience", flow: true},
		"nonce":            {authelia: true, endpoint: "token", says: "ID token with another nonce", flow: true},
		"expired":          {endpoint: "token", says: "ID token that has expired", flow: true},
		"userinfo":         {endpoint: "userinfo", says: "userinfo of somebody else", flow: true},
		"key":              {authelia: true, endpoint: "jwks", says: "the key of the ID token is not published"},
		"same":             {endpoint: "refresh", says: "the same access token after a refresh"},
		"refresh":          {endpoint: "refresh", says: "status 400 invalid_grant"},
		"no refresh token": {authelia: true, endpoint: "refresh", says: "no refresh token"},
		"stage":            {endpoint: "refresh", says: "authorization: ak-stage-prompt"},
		"state":            {endpoint: "authorization", says: "authorization: another state", flow: true},
		"denied":           {authelia: true, endpoint: "authorization", says: "authorization: access_denied", flow: true},
		"client":           {authelia: true, endpoint: "authorization", says: "authorization: invalid_client", flow: true},
		"logged out":       {endpoint: "authorization", says: "authorization: logged out", flow: true},
		"consent":          {authelia: true, endpoint: "authorization", says: "authorization: asks for consent; give the client consent_mode 'implicit'", flow: true},
	} {
		t.Run(fault, func(t *testing.T) {
			o := &op{fault: fault, authelia: row.authelia}
			run := runK6(t, startOP(t, o), canaryPassword, nil).must(t, 0)
			s := run.Find("OIDC", row.endpoint)
			if s == nil || s.Requests != 6 || s.Failed() != 6 || s.Failures[0] != (result.Failure{Kind: row.says, Count: 8}) {
				t.Errorf("%s: %+v", row.endpoint, s)
			}
			if flow := run.Find("OIDC", "code-flow"); (flow.Failed() == 6) != row.flow {
				t.Errorf("%d of 6 code flows failed", flow.Failed())
			}
		})
	}
}
