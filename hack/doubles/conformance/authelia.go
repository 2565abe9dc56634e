package conformance

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// cookieFormat is Authelia's session cookie: 32 characters of its own alphabet (facts/authelia.md §2).
var cookieFormat = regexp.MustCompile(`^[a-zA-Z0-9\-_!#$%^*]{32}$`)

// loginFloor is the least a login takes: the deliberate delay, in success too.
const loginFloor = 250 * time.Millisecond

func (s *suite) portal(c *client, method, path string, body any) (*answer, error) {
	return c.do(method, path, body, "X-Forwarded-Proto", "https", "X-Forwarded-Host", s.o.Portal)
}

// forward asks the forward-auth endpoint about a URL on host.
func (s *suite) forward(c *client, proto, host, method, accept string) (*answer, error) {
	return c.do(http.MethodGet, "/api/authz/forward-auth", nil, "X-Forwarded-Proto", proto, "X-Forwarded-Host", host, "X-Forwarded-Uri", "/app?x=1", "X-Forwarded-Method", method, "X-Forwarded-For", "198.51.100.7", "Accept", accept)
}

// must runs f and checks its status.
func (s *suite) must(name string, want int, a *answer, err error) (*answer, bool) {
	if err != nil {
		return nil, s.check(name, false, "%v", err)
	}
	return a, s.check(name, a.status == want, "status %d, want %d", a.status, want)
}

func (s *suite) authelia() error {
	c := s.client()
	a, err := c.do(http.MethodGet, "/api/health", nil)
	if err != nil {
		return err
	}
	s.check("GET /api/health", a.status == 200 && a.str("status") == "OK", "status %d, %q", a.status, a.str("status"))
	s.autheliaAnonymous()

	a, err = s.portal(s.client(), http.MethodPost, "/api/firstfactor", map[string]any{"username": s.o.Username, "password": s.o.Password + "-wrong"})
	if a, ok := s.must("wrong password", 401, a, err); ok {
		s.check("wrong password: the answer", a.str("status") == "KO" && a.str("message") == "Authentication failed. Check your credentials.", "%q %q", a.str("status"), a.str("message"))
		s.check("wrong password is held back", a.took >= loginFloor, "at least %v", loginFloor)
	}
	a, err = s.portal(c, http.MethodPost, "/api/firstfactor", map[string]any{"username": s.o.Username, "password": s.o.Password, "keepMeLoggedIn": false, "targetURL": "https://" + s.o.OneFactor + "/"})
	a, ok := s.must("POST /api/firstfactor", 200, a, err)
	if !ok {
		return nil
	}
	s.check("login: the answer", a.str("status") == "OK", "%q", a.str("status"))
	s.check("login is held back in success too", a.took >= loginFloor, "at least %v", loginFloor)
	id := c.cookies["authelia_session"]
	s.check("session cookie: 32 characters", cookieFormat.MatchString(id), "%d characters", len(id))
	s.check("session cookie flags", anyContains(c.raw, "authelia_session=", "HttpOnly", "secure", "path=/"), "")

	a, err = s.portal(c, http.MethodGet, "/api/state", nil)
	if a, ok := s.must("GET /api/state", 200, a, err); ok {
		d, _ := a.body["data"].(map[string]any)
		s.check("state names the user at level 1", d["username"] == s.o.Username && d["authentication_level"] == 1.0, "%v, level %v", d["username"], d["authentication_level"])
	}
	a, err = s.forward(c, "https", s.o.OneFactor, "GET", "text/html")
	if a, ok := s.must("forward-auth, logged in", 200, a, err); ok {
		s.check("Remote-* headers", a.header.Get("Remote-User") == s.o.Username && has(a.header, "Remote-Groups", "Remote-Name", "Remote-Email"), "Remote-User %q", a.header.Get("Remote-User"))
		s.check("an allowed answer sets no cookie", len(c.raw) == 0, "%d Set-Cookie lines", len(c.raw))
	}
	if s.o.Denied != "" {
		a, err = s.forward(c, "https", s.o.Denied, "GET", "text/html")
		s.must("forward-auth, denied host, logged in", 403, a, err)
	}
	a, err = s.portal(c, http.MethodPost, "/api/logout", map[string]string{"targetURL": ""})
	s.must("POST /api/logout", 200, a, err)
	c.cookies["authelia_session"] = id
	a, err = s.forward(c, "https", s.o.OneFactor, "GET", "text/html")
	s.must("the old cookie after log-out", 302, a, err)
	if s.o.ClientID != "" {
		if err := s.autheliaOpenID(); err != nil {
			return err
		}
	}
	if s.o.DSN != "" {
		return s.countAuthelia()
	}
	return nil
}

// autheliaOpenID goes through the code flow with the client of the configuration.
func (s *suite) autheliaOpenID() error {
	p := &relyingParty{id: s.o.ClientID, secret: s.o.ClientSecret, redirect: s.o.RedirectURI, host: s.o.Portal, issuer: "https://" + s.o.Portal,
		authorize: "/api/oidc/authorization", token: "/api/oidc/token", userinfo: "/api/oidc/userinfo", jwks: "/jwks.json"}
	a, err := p.ask(s.client(), http.MethodGet, "/.well-known/openid-configuration", nil)
	if err != nil {
		return err
	}
	s.check("discovery", a.status == 200 && a.str("issuer") == p.issuer && a.str("token_endpoint") == p.issuer+p.token && a.str("jwks_uri") == p.issuer+p.jwks, "status %d, issuer %q", a.status, a.str("issuer"))
	return s.codeFlow(p, func() (*client, error) {
		c := s.client()
		a, err := s.portal(c, http.MethodPost, "/api/firstfactor", map[string]any{"username": s.o.Username, "password": s.o.Password})
		if err == nil && a.status != 200 {
			err = fmt.Errorf("login answered %d", a.status)
		}
		return c, err
	})
}

func has(h http.Header, names ...string) bool {
	for _, n := range names {
		if _, ok := h[http.CanonicalHeaderKey(n)]; !ok {
			return false
		}
	}
	return true
}

// autheliaAnonymous goes through the table of §1.2 without a session.
func (s *suite) autheliaAnonymous() {
	for _, t := range []struct {
		name, proto, method, accept string
		want                        int
	}{
		{"GET, browser", "https", "GET", "text/html", 302},
		{"POST, browser", "https", "POST", "text/html", 303},
		{"GET, no Accept: text/html", "https", "GET", "application/json", 401},
		{"insecure scheme", "http", "GET", "text/html", 400},
	} {
		c := s.client()
		a, err := s.forward(c, t.proto, s.o.OneFactor, t.method, t.accept)
		a, ok := s.must("forward-auth anonymous, "+t.name, t.want, a, err)
		if ok && t.want != 400 {
			l := a.header.Get("Location")
			s.check("forward-auth anonymous, "+t.name+": Location", strings.Contains(l, s.o.Portal) && strings.Contains(l, "rd=https") && strings.Contains(l, "rm="+t.method), "%s", l)
		}
	}
	c := s.client()
	a, err := c.do(http.MethodGet, "/api/authz/auth-request", nil, "X-Original-Method", "GET", "X-Original-Url", "https://"+s.o.OneFactor+"/", "Accept", "text/html")
	s.must("auth-request anonymous", 401, a, err)
	a, err = c.do(http.MethodPost, "/api/authz/forward-auth", nil, "X-Forwarded-Proto", "https")
	s.must("forward-auth takes GET and HEAD only", 405, a, err)
	if s.o.Bypass != "" {
		a, err = s.forward(s.client(), "https", s.o.Bypass, "GET", "text/html")
		s.must("forward-auth anonymous, bypass", 200, a, err)
	}
	if s.o.Denied != "" {
		a, err = s.forward(s.client(), "https", s.o.Denied, "GET", "text/html")
		s.must("forward-auth anonymous, denied", 403, a, err)
	}
}

// countAuthelia counts what a login writes to PostgreSQL: one row (§1.6). The rows are counted, not the WAL's syncs:
// Authelia keeps its connections, and a backend that lives on reports its counters only now and then.
func (s *suite) countAuthelia() error {
	p, err := openProbe(s.ctx, s.o.DSN)
	if err != nil {
		return err
	}
	defer p.conn.Close(s.ctx)
	var before, after int
	count := func(n *int) error {
		return p.conn.QueryRow(s.ctx, "SELECT count(*) FROM authentication_logs WHERE successful").Scan(n)
	}
	if err := count(&before); err != nil {
		return err
	}
	n := s.o.Logins
	for range n {
		if _, err := AutheliaLogin(s.ctx, s.o); err != nil {
			return err
		}
	}
	if err := count(&after); err != nil {
		return err
	}
	s.check("a login writes one row of authentication_logs", after-before == n, "%d rows for %d logins", after-before, n)
	return nil
}

// AutheliaLogin logs in once without a cookie and returns the session cookie's value.
func AutheliaLogin(ctx context.Context, o Options) (string, error) {
	s := &suite{o: o, ctx: ctx}
	c := s.client()
	a, err := s.portal(c, http.MethodPost, "/api/firstfactor", map[string]any{"username": o.Username, "password": o.Password})
	if err == nil && a.status != 200 {
		err = fmt.Errorf("login answered %d", a.status)
	}
	return c.cookies["authelia_session"], err
}

// AutheliaCheck asks forward-auth once, with or without a session.
func AutheliaCheck(ctx context.Context, o Options, cookie string) error {
	s := &suite{o: o, ctx: ctx}
	c := s.client()
	if cookie != "" {
		c.cookies["authelia_session"] = cookie
	}
	_, err := s.forward(c, "https", o.OneFactor, http.MethodGet, "text/html")
	return err
}
