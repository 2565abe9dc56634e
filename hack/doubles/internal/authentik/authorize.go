package authentik

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The flows of a provider, by slug, with their designation (blueprints/default/flow-default-provider-*.yaml).
const authorizationFlow = "default-provider-authorization-implicit-consent"

var outpostFlows = map[string]string{authorizationFlow: "authorization", "default-provider-invalidation-flow": "invalidation"}

// The statements of an authorisation were never measured; its writes are those of facts/authentik.md §5.2.
var (
	authorizeBudget = budget{70, 32}
	executeBudget   = budget{70, 32}
	tokenBudget     = budget{45, 20}
)

// authorize is /application/o/authorize/: who is not logged in goes to the login, who is goes through the authorisation
// flow, and a client of OpenID Connect that nobody must be asked about gets its code at once. The session is saved
// with what was asked for.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), authorizeBudget)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	q := r.URL.Query()
	var external string
	var allowed *string
	found, err := d.one([]any{&external, &allowed}, `SELECT COALESCE(x.external_host, ''), c._redirect_uris::text FROM authentik_providers_oauth2_oauth2provider c LEFT JOIN authentik_providers_proxy_proxyprovider x ON x.oauth2provider_ptr_id = c.provider_ptr_id WHERE c.client_id = $1`, q.Get("client_id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if external == "" {
		if !redirectAllowed(allowed, q.Get("redirect_uri")) {
			http.Error(w, "Redirect URI Error", http.StatusBadRequest)
			return
		}
	} else if strings.TrimRight(external, "/")+outpostPath+"/callback?X-authentik-auth-callback=true" != q.Get("redirect_uri") {
		http.Error(w, "Redirect URI Error", http.StatusBadRequest)
		return
	}
	se, err := s.loadSession(d, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if se == nil || se.User == nil {
		http.Redirect(w, r, "/flows/-/default/authentication/?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusFound)
		return
	}
	se.State = planState{Flow: authorizationFlow, Authorize: r.URL.RawQuery}
	if external == "" && !asksConsent(q) {
		// Nothing is to be shown: the answer of the last stage is that of the request.
		to, err := s.grant(w, r, d, se)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	if err := s.save(w, r, d, se); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/if/flow/"+authorizationFlow+"/?"+r.URL.RawQuery, http.StatusFound)
}

// executeAuthorization is the executor of the authorisation flow, which asks for consent where a refresh token is wanted
// (authentik/providers/oauth2/views/authorize.py), and then sends the browser back with a code.
func (s *Server) executeAuthorization(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), executeBudget)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	se, err := s.loadSession(d, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if se == nil || se.User == nil || se.State.Flow != authorizationFlow || se.State.Authorize == "" {
		writeJSON(w, http.StatusOK, map[string]any{"component": "ak-stage-access-denied", "error_message": "Flow does not apply to current user."})
		return
	}
	if asked, _ := url.ParseQuery(se.State.Authorize); asksConsent(asked) && !se.State.Consented {
		if err := s.consent(w, r, d, se); err != nil {
			s.fail(w, r, err)
		}
		return
	}
	to, err := s.grant(w, r, d, se)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"component": "xak-flow-redirect", "to": to})
}

// asksConsent is whether somebody must be asked: the outpost never asks for offline_access.
func asksConsent(asked url.Values) bool {
	return slices.Contains(strings.Fields(asked.Get("scope")), "offline_access")
}

// consent is the stage that the product puts before the last one: its token has to come back.
func (s *Server) consent(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	if r.Method == http.MethodPost {
		if !csrfOK(r) {
			writeJSON(w, http.StatusForbidden, map[string]string{"detail": "CSRF Failed: CSRF token missing."})
			return nil
		}
		var sent struct {
			Component string `json:"component"`
			Token     string `json:"token"`
		}
		if err := readBody(r, &sent); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		if sent.Component == "ak-stage-consent" && sent.Token == se.State.Consent && sent.Token != "" {
			se.State.Consented = true
			return s.again(w, r, d, se)
		}
	}
	se.State.Consent = uuid.NewString()
	if err := s.save(w, r, d, se); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"component": "ak-stage-consent", "token": se.State.Consent, "permissions": []any{}, "additional_permissions": []any{},
		"pending_user": se.User.Username, "pending_user_avatar": avatar, "flow_info": map[string]any{"title": "Redirecting to application", "background": "/static/dist/assets/images/flow_background.jpg", "cancel_url": "/flows/-/cancel/", "layout": "stacked"}})
	return nil
}

// grant ends an authorisation: the code is inserted, the event written with its task, the session saved. It returns
// where the browser goes.
func (s *Server) grant(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) (string, error) {
	asked, _ := url.ParseQuery(se.State.Authorize)
	to, err := url.Parse(asked.Get("redirect_uri"))
	var provider int
	if err == nil {
		_, err = d.one([]any{&provider}, "SELECT provider_ptr_id FROM authentik_providers_oauth2_oauth2provider WHERE client_id = $1", asked.Get("client_id"))
	}
	if err != nil {
		return "", err
	}
	code := randomString(32, "0123456789abcdef")
	se.State = planState{}
	err = firstError(
		d.fill(14),
		d.exec("INSERT INTO authentik_providers_oauth2_authorizationcode (ref_01_id, ref_02_id, code, expires, _scope, nonce, code_challenge, code_challenge_method) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
			se.User.ID, provider, code, time.Now().Add(time.Minute), asked.Get("scope"), asked.Get("nonce"), asked.Get("code_challenge"), asked.Get("code_challenge_method")),
		s.event(d, r, "authorize_application", map[string]any{"scopes": asked.Get("scope")}, se.User),
		s.save(w, r, d, se),
	)
	if err != nil {
		return "", err
	}
	back := to.Query()
	back.Set("code", code)
	back.Set("state", asked.Get("state"))
	to.RawQuery = back.Encode()
	return to.String(), nil
}
