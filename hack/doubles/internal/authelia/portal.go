package authelia

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const authenticationFailed = "Authentication failed. Check your credentials."

func ko(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, map[string]any{"status": "KO", "message": message})
}

// domain resolves the portal's cookie domain from X-Forwarded-Host, else Host.
func (s *Server) domain(r *http.Request) *CookieConfig {
	host := r.Header.Get("X-Forwarded-Host")
	if host == "" {
		host = r.Host
	}
	return s.cookieFor(host)
}

// session loads the request's session: one GET; without a cookie a new one is made and stored: one SET.
func (s *Server) session(r *http.Request, d *CookieConfig) (id string, u *userSession, fresh bool, err error) {
	if id = cookieValue(r, d.Name); len(id) == cookieLength {
		u, err = s.sessions.load(r.Context(), id, d.Domain)
		return id, u, false, err
	}
	id, u = newSessionID(), &userSession{CookieDomain: d.Domain}
	return id, u, true, s.sessions.put(r.Context(), id, u)
}

// firstFactor is POST /api/firstfactor. Its answer is held back in success and failure alike.
func (s *Server) firstFactor(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	ok, answer := s.checkFirstFactor(w, r)
	s.login.wait(r.Context(), time.Since(start), ok)
	if !ok {
		ko(w, http.StatusUnauthorized, authenticationFailed)
		return
	}
	writeJSON(w, http.StatusOK, answer)
}

func (s *Server) checkFirstFactor(w http.ResponseWriter, r *http.Request) (bool, map[string]any) {
	var in struct {
		Username      string `json:"username"`
		Password      string `json:"password"`
		TargetURL     string `json:"targetURL"`
		RequestMethod string `json:"requestMethod"`
		Keep          *bool  `json:"keepMeLoggedIn"`
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil || in.Username == "" || in.Password == "" {
		s.log.Error("Failed to parse 1FA request body", "path", r.URL.Path)
		return false, nil
	}
	d := s.domain(r)
	if d == nil {
		s.log.Error("1FA: the host lies in no cookie domain", "path", r.URL.Path)
		return false, nil
	}
	user, ok, err := s.authenticate(r, in.Username, in.Password)
	if err != nil || !ok {
		s.log.Error("Unsuccessful 1FA authentication attempt by user '"+in.Username+"'", "path", r.URL.Path, "remote_ip", remoteIP(r).String())
		return false, nil
	}
	ctx := r.Context()
	id, u, _, err := s.session(r, d)
	if err != nil {
		s.log.Error("error retrieving user session", "error", err.Error())
		return false, nil
	}
	// The id is made anew at each factor: EXISTS, RENAME, EXPIRE; then the session is saved: GET, SET.
	next := newSessionID()
	*u = userSession{CookieDomain: d.Domain, Username: in.Username, DisplayName: user.DisplayName, Emails: []string{user.Email}, Groups: user.Groups, Level: levelOne, LastActivity: time.Now().Unix()}
	err = s.sessions.store.rename(ctx, id, next, time.Duration(s.cfg.Session.Expiration))
	if err == nil {
		err = s.sessions.save(ctx, next, u)
	}
	if err == nil && in.Keep != nil && *in.Keep && s.cfg.Session.RememberMe > 0 {
		u.RememberMe = true
		err = s.sessions.save(ctx, next, u)
	}
	if err != nil {
		s.log.Error("error saving user session", "error", err.Error())
		return false, nil
	}
	s.setCookie(w, d, next, s.sessions.ttl(u))
	answer := map[string]any{"status": "OK"}
	if in.TargetURL != "" {
		t, err := url.Parse(in.TargetURL)
		if err == nil && t.Scheme == "https" && s.cookieFor(t.Host) != nil {
			if p, subj := s.cfg.AccessControl.required(target{t, strings.ToUpper(in.RequestMethod), remoteIP(r), u.Username, u.Groups}); decide(p, u.Level, subj) == authorized {
				answer["data"] = map[string]any{"redirect": in.TargetURL}
			}
		}
	} else if d.DefaultURL != "" {
		answer["data"] = map[string]any{"redirect": d.DefaultURL}
	}
	return true, answer
}

// authenticate does what a password login asks of SQL: SELECT banned_ip, SELECT banned_user, then the hash, then the
// row in authentication_logs. Only failures count towards a ban.
func (s *Server) authenticate(r *http.Request, name, password string) (User, bool, error) {
	ctx, ip := r.Context(), remoteIP(r).String()
	ipBan, err := s.storage.bannedIP(ctx, ip)
	if err != nil {
		return User{}, false, err
	}
	userBan, err := s.storage.bannedUser(ctx, name)
	if err != nil {
		return User{}, false, err
	}
	a := attempt{time: time.Now(), username: name, remoteIP: ip, uri: r.Header.Get("X-Forwarded-Uri"), method: r.Header.Get("X-Forwarded-Method")}
	if ipBan || userBan {
		a.banned = true
		return User{}, false, errors.Join(s.storage.record(ctx, a), errors.New("banned"))
	}
	u, known := s.users[name]
	if known && !u.Disabled {
		start := time.Now()
		a.successful, err = verify(u.Password, password)
		s.log.Debug("password verified", "ms", time.Since(start).Milliseconds())
		if err != nil {
			return User{}, false, err
		}
	}
	if err := s.storage.record(ctx, a); err != nil {
		return User{}, false, err
	}
	s.inc(map[bool]string{true: `authelia_authn{success="true",banned="false"}`, false: `authelia_authn{success="false",banned="false"}`}[a.successful])
	if a.successful {
		return u, true, nil
	}
	return User{}, false, s.regulate(r, name, ip)
}

// regulate bans after max_retries failures within find_time.
func (s *Server) regulate(r *http.Request, name, ip string) error {
	limit := s.cfg.maxRetries()
	if limit == 0 {
		return nil
	}
	since := time.Now().Add(-time.Duration(s.cfg.Regulation.FindTime))
	until := time.Now().Add(time.Duration(s.cfg.Regulation.BanTime))
	for _, mode := range s.cfg.Regulation.Modes {
		column, table, key, value := "username", "banned_user", "username", name
		if mode == "ip" {
			column, table, key, value = "remote_ip", "banned_ip", "ip", ip
		}
		n, err := s.storage.failures(r.Context(), column, value, since)
		if err != nil {
			return err
		}
		if n >= limit {
			if err := s.storage.ban(r.Context(), table, key, value, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// state is GET /api/state.
func (s *Server) state(w http.ResponseWriter, r *http.Request) {
	d := s.domain(r)
	if d == nil {
		ko(w, http.StatusForbidden, "Operation failed.")
		return
	}
	id, u, fresh, err := s.session(r, d)
	if err != nil {
		s.log.Error("error retrieving user session", "error", err.Error())
		ko(w, http.StatusOK, "Operation failed.")
		return
	}
	if fresh {
		s.setCookie(w, d, id, s.sessions.ttl(u))
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "OK", "data": map[string]any{"username": u.Username, "authentication_level": u.Level, "factor_knowledge": u.Level > levelNone, "default_redirection_url": d.DefaultURL}})
}

// logout destroys the session; it wants a JSON body.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	var in struct {
		TargetURL string `json:"targetURL"`
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	d := s.domain(r)
	if err != nil || d == nil {
		s.log.Error("Failed to parse the logout request", "path", r.URL.Path)
		ko(w, http.StatusOK, "Operation failed.")
		return
	}
	if id := cookieValue(r, d.Name); id != "" {
		if err := s.sessions.store.del(r.Context(), id); err != nil {
			ko(w, http.StatusOK, "Operation failed.")
			return
		}
	}
	s.setCookie(w, d, "", -1)
	safe := false
	if t, err := url.Parse(in.TargetURL); err == nil && in.TargetURL != "" {
		safe = t.Scheme == "https" && s.cookieFor(t.Host) != nil
	}
	writeJSON(w, http.StatusOK, map[string]any{"status": "OK", "data": map[string]any{"safeTargetURL": safe}})
}
