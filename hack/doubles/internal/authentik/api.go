package authentik

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// Who may call an endpoint.
type access int

const (
	anonymous access = iota
	loggedIn
	admin
)

// A call is one API request after authentication.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	d       *reqDB
	user    *user
	session *session
}

// identify authenticates by Bearer token or by cookie. A token costs one SELECT: no session, no throttle, no write
// (facts/authentik.md §5.2). The answer is written when it returns false.
func (s *Server) identify(w http.ResponseWriter, r *http.Request, d *reqDB) (u *user, se *session, ok bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		kind, token, _ := strings.Cut(h, " ")
		if !strings.EqualFold(kind, "bearer") || token == "" {
			writeJSON(w, http.StatusForbidden, map[string]string{"detail": "Unsupported authentication type"})
			return nil, nil, false
		}
		u, err := scanUser(d, `FROM authentik_core_token t INNER JOIN authentik_core_user u ON u.id = t.user_id WHERE t.intent = 'api' AND t.key = $1 AND (NOT t.expiring OR t.expires > now()) AND u.is_active`, token)
		if err != nil {
			s.fail(w, r, err)
			return nil, nil, false
		}
		if u == nil {
			writeJSON(w, http.StatusForbidden, map[string]string{"detail": "Token invalid/expired"})
			return nil, nil, false
		}
		return u, nil, true
	}
	se, err := s.loadSession(d, r)
	if err != nil {
		s.fail(w, r, err)
		return nil, nil, false
	}
	if se == nil || se.User == nil {
		return nil, se, true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !csrfOK(r) {
		writeJSON(w, http.StatusForbidden, map[string]string{"detail": "CSRF Failed: CSRF token missing."})
		return nil, nil, false
	}
	return se.User, se, true
}

// csrfOK compares header and cookie.
func csrfOK(r *http.Request) bool {
	ck, err := r.Cookie(csrfCookie)
	return err == nil && ck.Value != "" && r.Header.Get(csrfHeader) == ck.Value
}

// api wraps an endpoint: one connection, authentication, the throttle of anonymous requests, the statement budget.
// The budgets of the admin endpoints were not measured; nothing is measured over them either.
func (s *Server) api(who access, b budget, h func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d, err := s.cfg.open(r.Context(), b)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		defer d.close()
		u, se, ok := s.identify(w, r, d)
		if !ok {
			return
		}
		if u == nil && who != anonymous {
			writeJSON(w, http.StatusForbidden, map[string]string{"detail": "Authentication credentials were not provided."})
			return
		}
		if who == admin && !u.Super {
			writeJSON(w, http.StatusForbidden, map[string]string{"detail": "You do not have permission to perform this action."})
			return
		}
		if err := d.fill(6); err == nil {
			err = h(&call{w, r, d, u, se})
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		_ = d.finish()
	}
}

const userColumns = "SELECT u.id, u.username, u.name, u.email, u.uuid, u.is_active, " + superuser + ", u.path, u.type, u.attributes::text "

func scanUser(d *reqDB, from string, args ...any) (*user, error) {
	var u user
	var attrs string
	found, err := d.one([]any{&u.ID, &u.Username, &u.Name, &u.Email, &u.UUID, &u.Active, &u.Super, &u.Path, &u.Type, &attrs}, userColumns+from+" LIMIT 1", args...)
	if err != nil || !found {
		return nil, err
	}
	u.Attrs = json.RawMessage(attrs)
	return &u, nil
}

func (s *Server) userByID(d *reqDB, id int) (*user, error) {
	return scanUser(d, "FROM authentik_core_user u WHERE u.id = $1 AND u.is_active", id)
}

func (u *user) json() map[string]any {
	return map[string]any{"pk": u.ID, "username": u.Username, "name": u.Name, "is_active": u.Active, "last_login": nil, "is_superuser": u.Super, "groups": []any{}, "groups_obj": []any{},
		"email": u.Email, "avatar": avatar, "attributes": u.Attrs, "uid": strings.ReplaceAll(u.UUID.String(), "-", ""), "path": u.Path, "type": u.Type, "uuid": u.UUID.String()}
}

// page wraps results as authentik's paginator does.
func (s *Server) page(results []any) map[string]any {
	if results == nil {
		results = []any{}
	}
	n := len(results)
	answer := map[string]any{"pagination": map[string]any{"next": 0, "previous": 0, "count": n, "current": 1, "total_pages": 1, "start_index": min(1, n), "end_index": n}, "results": results}
	if s.cfg.Autocomplete {
		answer["autocomplete"] = map[string]any{}
	}
	return answer
}

// me is GET /core/users/me/: 25 statements; by cookie the session is marked modified and saved, one commit.
func (s *Server) me(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), budget{25, 11})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	u, se, ok := s.identify(w, r, d)
	if !ok {
		return
	}
	if u == nil {
		writeJSON(w, http.StatusForbidden, map[string]string{"detail": "Authentication credentials were not provided."})
		return
	}
	if se != nil {
		err = s.save(w, r, d, se)
	} else {
		err = d.finish()
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"user": map[string]any{"pk": u.ID, "username": u.Username, "name": u.Name, "is_active": true, "is_superuser": u.Super, "groups": []any{}, "email": u.Email,
		"avatar": avatar, "uid": strings.ReplaceAll(u.UUID.String(), "-", ""), "settings": map[string]any{}, "type": u.Type, "system_permissions": []any{}}})
}

func (s *Server) rootConfig(c *call) error {
	if c.user == nil && s.cfg.ThrottleInCache {
		if err := s.cache.throttle(c.d, clientIP(c.r)); err != nil {
			return err
		}
	}
	writeJSON(c.w, http.StatusOK, map[string]any{"error_reporting": map[string]any{"enabled": false, "sentry_dsn": "", "environment": "", "send_pii": false, "traces_sample_rate": 0.0}, "capabilities": []string{"can_save_media", "can_geo_ip"}, "cache_timeout": 300, "cache_timeout_flows": 300, "cache_timeout_policies": 300})
	return nil
}

func (s *Server) brandCurrent(c *call) error {
	if c.user == nil && s.cfg.ThrottleInCache {
		if err := s.cache.throttle(c.d, clientIP(c.r)); err != nil {
			return err
		}
	}
	writeJSON(c.w, http.StatusOK, map[string]any{"matched_domain": "authentik-default", "branding_title": "authentik", "branding_logo": "/static/dist/assets/icons/icon_left_brand.svg", "branding_favicon": "/static/dist/assets/icons/icon.png", "branding_custom_css": "", "ui_footer_links": []any{}, "ui_theme": "automatic", "flow_authentication": loginFlow, "flow_invalidation": "default-invalidation-flow", "default_locale": ""})
	return nil
}

func (s *Server) version(c *call) error {
	writeJSON(c.w, http.StatusOK, map[string]any{"version_current": s.cfg.Version, "version_latest": s.cfg.Version, "version_latest_valid": false, "build_hash": "", "outdated": false, "outpost_outdated": false})
	return nil
}

// settings is GET, PUT and PATCH /admin/settings/; avatars is the one setting that is kept.
func (s *Server) settings(c *call) error {
	switch c.r.Method {
	case http.MethodPut, http.MethodPatch:
		var in struct {
			Avatars *string `json:"avatars"`
		}
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		if in.Avatars != nil {
			if err := c.d.exec("UPDATE authentik_tenants_tenant SET avatars = $1 WHERE schema_name = 'public'", *in.Avatars); err != nil {
				return err
			}
		}
	case http.MethodGet:
	default:
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var avatars string
	if _, err := c.d.one([]any{&avatars}, "SELECT avatars FROM authentik_tenants_tenant WHERE schema_name = 'public'"); err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, map[string]any{"avatars": avatars, "default_user_change_name": true, "default_user_change_email": false, "default_user_change_username": false, "event_retention": "days=365", "reputation_lower_limit": -5, "reputation_upper_limit": 5, "footer_links": []any{}, "gdpr_compliance": true, "impersonation": true, "default_token_duration": "days=1", "default_token_length": 60})
	return nil
}

func (s *Server) tokens(c *call) error {
	var out []any
	var id uuid.UUID
	var identifier, intent, description string
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &identifier, &intent, &description); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "managed": nil, "identifier": identifier, "intent": intent, "description": description, "expires": nil, "expiring": false})
		return nil
	}, "SELECT token_uuid, identifier, intent, description FROM authentik_core_token WHERE ($1 = '' OR identifier = $1) ORDER BY identifier", c.r.URL.Query().Get("identifier"))
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}

func (s *Server) groups(c *call) error {
	var out []any
	var id uuid.UUID
	var name string
	var super bool
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name, &super); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "name": name, "is_superuser": super, "attributes": map[string]any{}})
		return nil
	}, "SELECT group_uuid, name, is_superuser FROM authentik_core_group WHERE ($1 = '' OR name = $1) ORDER BY name", c.r.URL.Query().Get("name"))
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}

func (s *Server) blueprints(c *call) error {
	var out []any
	var id uuid.UUID
	var name, path string
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name, &path); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "name": name, "path": path, "enabled": true, "status": "successful"})
		return nil
	}, "SELECT blueprintinstance_uuid, COALESCE(col_01, ''), COALESCE(col_03, '') FROM authentik_blueprints_blueprintinstance ORDER BY col_03")
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}
