package authentik

import (
	"net/http"
	"net/url"
	"strings"
	"time"
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

// authorize is /application/o/authorize/ for the providers of the outpost: who is not logged in goes to the login,
// who is goes through the authorisation flow. The session is saved with what was asked for.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), authorizeBudget)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	q := r.URL.Query()
	var external string
	found, err := d.one([]any{&external}, `SELECT x.external_host FROM authentik_providers_oauth2_oauth2provider c JOIN authentik_providers_proxy_proxyprovider x ON x.oauth2provider_ptr_id = c.provider_ptr_id WHERE c.client_id = $1`, q.Get("client_id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if strings.TrimRight(external, "/")+outpostPath+"/callback?X-authentik-auth-callback=true" != q.Get("redirect_uri") {
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
	if err := s.save(w, r, d, se); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/if/flow/"+authorizationFlow+"/?"+r.URL.RawQuery, http.StatusFound)
}

// executeAuthorization is the executor of the authorisation flow, which asks nothing: the code is inserted, the event
// written with its task, the session saved, and the browser sent back to the outpost.
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
	asked, _ := url.ParseQuery(se.State.Authorize)
	to, err := url.Parse(asked.Get("redirect_uri"))
	var provider int
	if err == nil {
		_, err = d.one([]any{&provider}, "SELECT provider_ptr_id FROM authentik_providers_oauth2_oauth2provider WHERE client_id = $1", asked.Get("client_id"))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	code := randomString(32, "0123456789abcdef")
	se.State = planState{}
	err = firstError(
		d.fill(14),
		d.exec("INSERT INTO authentik_providers_oauth2_authorizationcode (ref_01_id, ref_02_id, code, expires) VALUES ($1, $2, $3, $4)", se.User.ID, provider, code, time.Now().Add(time.Minute)),
		s.event(d, r, "authorize_application", map[string]any{"scopes": asked.Get("scope")}, se.User),
		s.save(w, r, d, se),
	)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	back := to.Query()
	back.Set("code", code)
	back.Set("state", asked.Get("state"))
	to.RawQuery = back.Encode()
	writeJSON(w, http.StatusOK, map[string]any{"component": "xak-flow-redirect", "to": to.String()})
}
