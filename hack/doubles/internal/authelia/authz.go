package authelia

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The implementations of an authz endpoint, by the names the configuration uses (§1.2).
const (
	implForwardAuth = "ForwardAuth"
	implAuthRequest = "AuthRequest"
	implExtAuthz    = "ExtAuthz"
	implLegacy      = "Legacy"
)

// authzRoutes serves the four default endpoints, or those that are configured: any entry replaces the whole set.
func (s *Server) authzRoutes(mux *http.ServeMux) {
	type endpoint struct {
		impl  string
		basic bool
	}
	set := map[string]endpoint{"forward-auth": {implForwardAuth, true}, "auth-request": {implAuthRequest, true}, "ext-authz": {implExtAuthz, true}, "legacy": {implLegacy, true}}
	if conf := s.cfg.Server.Endpoints.Authz; len(conf) > 0 {
		set = map[string]endpoint{}
		for name, e := range conf {
			basic := len(e.Strategies) == 0
			for _, st := range e.Strategies {
				basic = basic || strings.HasPrefix(st.Name, "Header")
			}
			set[name] = endpoint{e.Implementation, basic}
		}
	}
	for name, e := range set {
		path := "/api/authz/" + name
		if name == "legacy" {
			path = "/api/verify"
		}
		h := s.authz(e.impl, e.basic, path)
		if e.impl == implForwardAuth || e.impl == implAuthRequest {
			mux.HandleFunc("GET "+path, h) // and HEAD; no other method
			continue
		}
		mux.HandleFunc(path, h)
		mux.HandleFunc(path+"/", h)
	}
}

// object reads what the proxy asks about.
func object(impl, path string, r *http.Request) (u *url.URL, method string, err error) {
	raw := ""
	switch {
	case impl == implAuthRequest, impl == implLegacy && r.Header.Get("X-Original-Url") != "":
		raw, method = r.Header.Get("X-Original-Url"), r.Header.Get("X-Original-Method")
		if impl == implAuthRequest && method == "" {
			return nil, "", fmt.Errorf("header 'X-Original-Method' is empty")
		}
	case impl == implExtAuthz:
		method = r.Method
		raw = r.Header.Get("X-Forwarded-Proto") + "://" + r.Host + strings.TrimPrefix(r.URL.RequestURI(), path)
	default:
		method = r.Header.Get("X-Forwarded-Method")
		if r.Header.Get("X-Forwarded-Host") == "" || (method == "" && impl == implForwardAuth) {
			return nil, "", fmt.Errorf("headers 'X-Forwarded-Host' and 'X-Forwarded-Method' are required")
		}
		raw = r.Header.Get("X-Forwarded-Proto") + "://" + r.Header.Get("X-Forwarded-Host") + r.Header.Get("X-Forwarded-Uri")
	}
	if u, err = url.ParseRequestURI(raw); err != nil {
		return nil, "", err
	}
	if u.Scheme != "https" && u.Scheme != "wss" {
		return nil, "", fmt.Errorf("target URL '%s' has an insecure scheme '%s', only the 'https' and 'wss' schemes are supported", u, u.Scheme)
	}
	return u, method, nil
}

// authz is one decision.
func (s *Server) authz(impl string, basic bool, path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		code := s.decision(w, r, impl, basic, path)
		s.inc(fmt.Sprintf(`authelia_authz{code="%d"}`, code))
	}
}

func (s *Server) decision(w http.ResponseWriter, r *http.Request, impl string, basic bool, path string) int {
	reply := func(code int) int {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		fmt.Fprintf(w, "%d %s", code, http.StatusText(code))
		return code
	}
	bad := http.StatusBadRequest
	if impl == implLegacy {
		bad = http.StatusUnauthorized
	}
	obj, method, err := object(impl, path, r)
	if err != nil {
		s.log.Error("Error getting Target URL and Request Method: "+err.Error(), "remote_ip", remoteIP(r).String())
		return reply(bad)
	}
	d := s.cookieFor(obj.Host)
	if d == nil {
		s.log.Error("Target URL '" + obj.String() + "' does not appear to match any session cookie domain")
		return reply(bad)
	}
	u, fresh, ok := s.authn(w, r, d, basic)
	if !ok {
		return http.StatusUnauthorized
	}
	policy, subj := s.cfg.AccessControl.required(target{obj, method, remoteIP(r), u.Username, u.Groups})
	res := decide(policy, u.Level, subj)
	if s.log.Enabled(r.Context(), -4) {
		s.log.Debug("Check authorization of subject", "user", u.Username, "url", obj.String(), "policy", policy)
	}
	switch res {
	case authorized: // no Set-Cookie: the product resets the reply's headers
		if u.Username != "" {
			h := w.Header()
			h.Set("Remote-User", u.Username)
			h.Set("Remote-Groups", strings.Join(u.Groups, ","))
			h.Set("Remote-Name", u.DisplayName)
			if len(u.Emails) > 0 {
				h.Set("Remote-Email", u.Emails[0])
			}
		}
		return reply(http.StatusOK)
	case forbidden:
		s.log.Info("Access to '"+obj.String()+"' is forbidden to user '"+u.Username+"'", "remote_ip", remoteIP(r).String())
		return reply(http.StatusForbidden)
	}
	redirect, _ := url.Parse(d.AutheliaURL)
	q := url.Values{"rd": {obj.String()}}
	if method != "" {
		q.Set("rm", method)
	}
	redirect.RawQuery = q.Encode()
	if redirect.Path == "" {
		redirect.Path = "/"
	}
	code := statusUnauthorized(impl, method, r)
	who := u.Username
	if who == "" {
		who = "<anonymous>"
	}
	s.log.Info(fmt.Sprintf("Access to '%s' (method %s) is not authorized to user '%s', responding with status code %d with location redirect to %s", obj, method, who, code, redirect), "remote_ip", remoteIP(r).String())
	if fresh != "" {
		s.setCookie(w, d, fresh, time.Duration(s.cfg.Session.Expiration))
	}
	w.Header().Set("Location", redirect.String())
	return reply(code)
}

// statusUnauthorized: 302 for GET, HEAD and OPTIONS, 303 for other methods, 401 for scripts and for nginx.
func statusUnauthorized(impl, method string, r *http.Request) int {
	if impl == implAuthRequest || r.Header.Get("X-Requested-With") == "XMLHttpRequest" || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return http.StatusUnauthorized
	}
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return http.StatusFound
	}
	return http.StatusSeeOther
}

// authn runs the strategies: a Basic header where allowed, then the cookie. fresh is the id of a session that this
// request made. A session that cannot be read counts as anonymous, one that cannot be written changes nothing (§1.5).
func (s *Server) authn(w http.ResponseWriter, r *http.Request, d *CookieConfig, basic bool) (u *userSession, fresh string, ok bool) {
	if name, password, has := r.BasicAuth(); basic && has {
		start := time.Now()
		user, good, err := s.authenticate(r, name, password)
		if err != nil || !good {
			s.basic.wait(r.Context(), time.Since(start), false)
			w.Header().Set("WWW-Authenticate", `Basic realm="Authorization Required"`)
			w.WriteHeader(http.StatusUnauthorized)
			return nil, "", false
		}
		return &userSession{Username: name, DisplayName: user.DisplayName, Emails: []string{user.Email}, Groups: user.Groups, Level: levelOne}, "", true
	}
	ctx := r.Context()
	id, u, made, err := s.session(r, d)
	if err != nil {
		s.log.Debug("session is not readable, treated as anonymous", "error", err.Error())
		return &userSession{CookieDomain: d.Domain}, "", true
	}
	if made {
		return u, id, true
	}
	if u.RememberMe && u.Username != "" { // neither the inactivity check nor a write
		return u, "", true
	}
	now := time.Now()
	if u.Username != "" && now.Sub(time.Unix(u.LastActivity, 0)) > time.Duration(s.cfg.Session.Inactivity) {
		s.log.Info("User '" + u.Username + "' has been inactive for too long")
		_ = s.sessions.store.del(ctx, id)
		return &userSession{CookieDomain: d.Domain}, "", true
	}
	u.LastActivity = now.Unix()
	if err := s.sessions.save(ctx, id, u); err != nil {
		s.log.Error("Unable to save updated user session", "error", err.Error())
	}
	return u, "", true
}
