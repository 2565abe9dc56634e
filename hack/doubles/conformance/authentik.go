package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const executor = "/api/v3/flows/executor/default-authentication-flow/?query="

// Steps of a login, as the default flow asks for them (facts/authentik.md §5.1).
type step struct {
	name, method string
	body         func(user, password string) any
	status       int
	component    string // empty for a redirect
}

var steps = []step{
	{"1 GET identification", http.MethodGet, nil, 200, "ak-stage-identification"},
	{"2 POST identification", http.MethodPost, func(u, _ string) any {
		return map[string]string{"component": "ak-stage-identification", "uid_field": u}
	}, 302, ""},
	{"3 GET password", http.MethodGet, nil, 200, "ak-stage-password"},
	{"4 POST password", http.MethodPost, func(_, p string) any {
		return map[string]string{"component": "ak-stage-password", "password": p}
	}, 302, ""},
	{"5 GET MFA (skipped)", http.MethodGet, nil, 302, ""},
	{"6 GET user_login", http.MethodGet, nil, 200, "xak-flow-redirect"},
}

// take makes one step's request and says what is wrong with the answer.
func (c *client) take(st step, user, password string) (*answer, error) {
	var body any
	if st.body != nil {
		body = st.body(user, password)
	}
	a, err := c.do(st.method, executor, body)
	switch {
	case err != nil:
		return nil, err
	case a.status != st.status:
		return a, fmt.Errorf("status %d, want %d", a.status, st.status)
	case st.component == "" && !strings.HasPrefix(pathOf(a.header.Get("Location")), strings.TrimSuffix(executor, "?query=")):
		return a, fmt.Errorf("Location %q is not the same URL", a.header.Get("Location"))
	case st.component != "" && a.str("component") != st.component:
		return a, fmt.Errorf("component %q, want %q", a.str("component"), st.component)
	}
	return a, nil
}

func pathOf(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return location
	}
	return u.Path
}

// loginAuthentik makes all six requests.
func (c *client) loginAuthentik(user, password string) error {
	for _, st := range steps {
		if _, err := c.take(st, user, password); err != nil {
			return fmt.Errorf("%s: %w", st.name, err)
		}
	}
	return nil
}

func (s *suite) authentik() error {
	admin := s.client()
	admin.header.Set("Authorization", "Bearer "+s.o.Token)
	anon := s.client()
	for _, p := range []string{"/-/health/live/", "/-/health/ready/"} {
		a, err := anon.do(http.MethodGet, p, nil)
		if err != nil {
			return err
		}
		s.check("GET "+p, a.status == 200, "status %d, want 200", a.status)
	}
	a, err := admin.do(http.MethodGet, "/api/v3/admin/version/", nil)
	if err != nil {
		return err
	}
	version := a.str("version_current")
	s.check("admin version by token", a.status == 200 && version != "", "status %d, version %q", a.status, version)
	if s.o.Version == "" {
		s.o.Version = version
	}
	s.check("version is the expected one", version == s.o.Version, "%q, want %q", version, s.o.Version)
	bad := s.client()
	bad.header.Set("Authorization", "Bearer not-a-token")
	if a, err = bad.do(http.MethodGet, "/api/v3/core/users/", nil); err != nil {
		return err
	}
	s.check("wrong token", a.status == 403, "status %d, want 403", a.status)
	for _, p := range []string{"/api/v3/core/applications/", "/api/v3/core/users/me/"} {
		if a, err = anon.do(http.MethodGet, p, nil); err != nil {
			return err
		}
		s.check("anonymous "+p, a.status == 403 || a.status == 401, "status %d, want 403", a.status)
	}
	if a, err = admin.do(http.MethodPatch, "/api/v3/admin/settings/", map[string]string{"avatars": "initials"}); err != nil {
		return err
	}
	s.check("PATCH admin settings", a.status == 200 && a.str("avatars") == "initials", "status %d, avatars %q", a.status, a.str("avatars"))

	user, password := fmt.Sprintf("conformance-%d", time.Now().UnixNano()), "Pa55-word-of-the-suite"
	pk, err := s.createUser(admin, user, password)
	if err != nil || pk == 0 {
		return err
	}
	defer func() { _, _ = admin.do(http.MethodDelete, fmt.Sprintf("/api/v3/core/users/%d/", pk), nil) }()

	if err := s.loginSteps(user, password); err != nil {
		return err
	}
	if err := s.loggedIn(admin, user, password); err != nil {
		return err
	}
	if err := s.forwardAuth(admin, user, password); err != nil {
		return err
	}
	if err := s.openIDConnect(admin, user, password); err != nil {
		return err
	}
	if s.o.DSN != "" {
		if err := s.countAuthentik(user, password); err != nil {
			return err
		}
	}
	if a, err = admin.do(http.MethodDelete, fmt.Sprintf("/api/v3/core/users/%d/", pk), nil); err != nil {
		return err
	}
	s.check("DELETE user", a.status == 204, "status %d, want 204", a.status)
	if a, err = admin.do(http.MethodGet, fmt.Sprintf("/api/v3/core/users/%d/", pk), nil); err != nil {
		return err
	}
	s.check("deleted user is gone", a.status == 404, "status %d, want 404", a.status)
	return nil
}

func (s *suite) createUser(admin *client, user, password string) (int, error) {
	body := map[string]any{"username": user, "name": "Conformance", "path": "authstack", "type": "internal", "is_active": true, "groups": []string{}, "attributes": map[string]any{}}
	a, err := admin.do(http.MethodPost, "/api/v3/core/users/", body)
	if err != nil {
		return 0, err
	}
	pk, _ := a.body["pk"].(float64)
	if !s.check("POST user", a.status == 201 && pk > 0, "status %d, pk %v", a.status, a.body["pk"]) {
		return 0, nil
	}
	if a, err = admin.do(http.MethodPost, "/api/v3/core/users/", body); err != nil {
		return 0, err
	}
	s.check("POST the same username", a.status == 400, "status %d, want 400", a.status)
	if a, err = admin.do(http.MethodGet, "/api/v3/core/users/?username="+url.QueryEscape(user), nil); err != nil {
		return 0, err
	}
	list, _ := a.body["results"].([]any)
	s.check("GET users by username", a.status == 200 && len(list) == 1, "status %d, %d results", a.status, len(list))
	a, err = admin.do(http.MethodPost, "/api/v3/core/users/"+strconv.Itoa(int(pk))+"/set_password/", map[string]string{"password": password})
	if err != nil {
		return 0, err
	}
	s.check("POST set_password", a.status == 204, "status %d, want 204", a.status)
	return int(pk), nil
}

// loginSteps checks the six requests one by one, then the wrong password and the unknown user.
func (s *suite) loginSteps(user, password string) error {
	c := s.client()
	before := ""
	for i, st := range steps {
		a, err := c.take(st, user, password)
		if a == nil {
			return err
		}
		s.check("login "+st.name, err == nil, "%s", detail(err, a))
		switch i {
		case 0:
			fields, _ := a.body["user_fields"].([]any)
			s.check("identification asks for no password", a.body["password_fields"] == false && len(fields) > 0, "password_fields %v, user_fields %v", a.body["password_fields"], fields)
			before = c.cookies["authentik_session"]
			s.check("session cookie is a JWT", strings.Count(before, ".") == 2, "%d dots", strings.Count(before, "."))
			s.check("session cookie flags", anyContains(c.raw, "authentik_session=", "HttpOnly", "Path=/"), "%d Set-Cookie lines", len(c.raw))
		case 2:
			s.check("password challenge names the user", a.str("pending_user") != "", "pending_user %q", a.str("pending_user"))
		case 5:
			s.check("the flow ends at /", a.str("to") == "/", "to %q", a.str("to"))
			s.check("session changes at login", c.cookies["authentik_session"] != "" && c.cookies["authentik_session"] != before, "")
			s.check("CSRF cookie", c.cookies["authentik_csrf"] != "", "")
		}
	}
	for _, who := range []string{user, "nobody-" + user} {
		w := s.client()
		for i, st := range steps[:3] {
			if _, err := w.take(st, who, "wrong"); err != nil {
				s.check("wrong login of "+who[:6]+", step "+strconv.Itoa(i+1), false, "%v", err)
			}
		}
		a, err := w.do(http.MethodPost, executor, steps[3].body(who, "wrong"))
		if err != nil {
			return err
		}
		_, errs := a.body["response_errors"].(map[string]any)
		s.check("wrong password ("+map[bool]string{true: "known", false: "unknown"}[who == user]+" user)", a.status == 200 && errs && a.str("component") == "ak-stage-password", "status %d, component %q, response_errors %v", a.status, a.str("component"), errs)
	}
	return nil
}

func detail(err error, a *answer) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("status %d %s", a.status, a.str("component"))
}

func anyContains(lines []string, parts ...string) bool {
	for _, l := range lines {
		ok := true
		for _, p := range parts {
			ok = ok && strings.Contains(strings.ToLower(l), strings.ToLower(p))
		}
		if ok {
			return true
		}
	}
	return false
}

// loggedIn checks what a dashboard asks for.
func (s *suite) loggedIn(admin *client, user, password string) error {
	c := s.client()
	if err := c.loginAuthentik(user, password); err != nil {
		s.check("second login", false, "%v", err)
		return nil
	}
	a, err := c.do(http.MethodGet, "/api/v3/core/users/me/", nil)
	if err != nil {
		return err
	}
	me, _ := a.body["user"].(map[string]any)
	s.check("GET users/me by cookie", a.status == 200 && me["username"] == user, "status %d, username %v", a.status, me["username"])
	for _, by := range []*client{c, admin} {
		if a, err = by.do(http.MethodGet, "/api/v3/core/applications/", nil); err != nil {
			return err
		}
		_, list := a.body["results"].([]any)
		_, pages := a.body["pagination"].(map[string]any)
		name := map[bool]string{true: "cookie", false: "token"}[by == c]
		s.check("GET applications by "+name, a.status == 200 && list && pages, "status %d", a.status)
	}
	if a, err = c.do(http.MethodPost, "/api/v3/core/users/", map[string]any{"username": "x", "name": "x"}); err != nil {
		return err
	}
	s.check("unsafe method by cookie without CSRF header", a.status == 403, "status %d, want 403", a.status)
	for _, p := range []string{"/api/v3/root/config/", "/api/v3/core/brands/current/"} {
		if a, err = s.client().do(http.MethodGet, p, nil); err != nil {
			return err
		}
		s.check("GET "+p, a.status == 200, "status %d", a.status)
	}
	return nil
}
