package authelia

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// OpenID Connect as Authelia 4.39.20 answered when it was run with a client whose consent is implicit; the statements
// and commits of each request are those counted on it (docs/scenarios.md).

func (s *Server) oidcRoutes(mux *http.ServeMux) {
	if s.oidc == nil {
		return
	}
	mux.HandleFunc("GET /api/oidc/authorization", s.authorization)
	mux.HandleFunc("POST /api/oidc/consent", s.consent)
	mux.HandleFunc("POST /api/oidc/token", s.token)
	mux.HandleFunc("/api/oidc/userinfo", s.userinfo)
	mux.HandleFunc("GET /jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{"use": "sig", "kty": "RSA", "kid": s.oidc.kid, "alg": "RS256",
			"n": b64.EncodeToString(s.oidc.key.N.Bytes()), "e": b64.EncodeToString(big.NewInt(int64(s.oidc.key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		iss := issuer(r)
		writeJSON(w, http.StatusOK, map[string]any{"issuer": iss, "jwks_uri": iss + "/jwks.json", "authorization_endpoint": iss + "/api/oidc/authorization", "token_endpoint": iss + "/api/oidc/token", "userinfo_endpoint": iss + "/api/oidc/userinfo",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"}, "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
}

// issuer is where people reach the portal.
func issuer(r *http.Request) string {
	host := r.Header.Get("X-Forwarded-Host")
	if host == "" {
		host = r.Host
	}
	return "https://" + host
}

// oidcError ends an authorization: at the portal where the client or its redirect URI is wrong, else back at the client.
func oidcError(w http.ResponseWriter, r *http.Request, redirect, state, code string) {
	if redirect == "" {
		http.Redirect(w, r, issuer(r)+"/consent/completion?error="+code, http.StatusFound)
		return
	}
	http.Redirect(w, r, redirect+"?"+url.Values{"error": {code}, "state": {state}, "iss": {issuer(r)}}.Encode(), http.StatusSeeOther)
}

// authorization is GET /api/oidc/authorization. With a session and nothing to ask: eight statements, of which six are
// commits of their own.
func (s *Server) authorization(w http.ResponseWriter, r *http.Request) {
	q, ctx := r.URL.Query(), r.Context()
	client := s.oidc.client(q.Get("client_id"))
	switch {
	case client == nil:
		oidcError(w, r, "", "", "invalid_client")
		return
	case !slices.Contains(client.Redirects, q.Get("redirect_uri")):
		oidcError(w, r, "", "", "invalid_request")
		return
	case len(q.Get("state")) < 8 || len(q.Get("nonce")) < 8 && q.Get("nonce") != "":
		oidcError(w, r, q.Get("redirect_uri"), q.Get("state"), "invalid_state")
		return
	}
	for _, scope := range strings.Fields(q.Get("scope")) {
		if !slices.Contains(client.Scopes, scope) {
			oidcError(w, r, q.Get("redirect_uri"), q.Get("state"), "invalid_scope")
			return
		}
	}
	d := s.domain(r)
	if d == nil {
		oidcError(w, r, "", "", "server_error")
		return
	}
	_, u, _, err := s.session(r, d)
	if err != nil {
		oidcError(w, r, "", "", "server_error")
		return
	}
	flow := q.Get("consent_id")
	g := &grant{Request: uuid.NewString(), Client: client.ID, Scope: q.Get("scope"), Redirect: q.Get("redirect_uri"), Nonce: q.Get("nonce"), Challenge: q.Get("code_challenge"), Query: r.URL.RawQuery}
	if u.Level < levelOne {
		flow = uuid.NewString()
		if err := s.oidc.grants.insert(ctx, kindConsent, flow, g); err != nil {
			oidcError(w, r, "", "", "server_error")
			return
		}
		http.Redirect(w, r, issuer(r)+"/?flow=openid_connect&flow_id="+flow, http.StatusFound)
		return
	}
	if g.Subject, err = s.oidc.grants.subject(ctx, u.Username); err == nil {
		g.Username, g.DisplayName, g.AuthTime = u.Username, u.DisplayName, u.LastActivity
		if len(u.Emails) > 0 {
			g.Email = u.Emails[0]
		}
		asks := client.Consent != "implicit" || slices.Contains(strings.Fields(g.Scope), "offline_access")
		err = s.decide(w, r, g, flow, asks)
	}
	if err != nil {
		s.log.Error("Authorization Request could not be processed", "error", err.Error())
		oidcError(w, r, "", "", "server_error")
	}
}

// decide asks for consent, or grants.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, g *grant, flow string, asks bool) error {
	ctx, store := r.Context(), s.oidc.grants
	given := flow != ""
	if !given {
		flow = uuid.NewString()
		if err := store.insert(ctx, kindConsent, flow, g); err != nil {
			return err
		}
		if asks {
			http.Redirect(w, r, issuer(r)+"/consent/openid/decision?flow=openid_connect&flow_id="+flow, http.StatusFound)
			return nil
		}
	}
	consent, err := store.find(ctx, kindConsent, flow)
	if err != nil {
		return err
	}
	if consent == nil || consent.Client != g.Client || consent.Scope != g.Scope || given && (!consent.Consented || consent.Subject != g.Subject) {
		oidcError(w, r, "", "", "invalid_request")
		return nil
	}
	if !given {
		g.Consented = true
		if err := store.update(ctx, kindConsent, flow, g); err != nil {
			return err
		}
	}
	code, signature := s.oidc.issue("authelia_ac_")
	g.Expires = time.Now().Add(codeLifespan).Unix()
	for _, kind := range []string{kindCode, kindOpenID, kindPKCE} {
		if err := store.insert(ctx, kind, signature, g); err != nil {
			return err
		}
	}
	if err := store.granted(ctx, flow); err != nil {
		return err
	}
	back := url.Values{"code": {code}, "iss": {issuer(r)}, "scope": {g.Scope}, "state": {r.URL.Query().Get("state")}}
	http.Redirect(w, r, g.Redirect+"?"+back.Encode(), http.StatusSeeOther)
	return nil
}

// consent is POST /api/oidc/consent: the page's answer.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) {
	var in struct {
		FlowID   string `json:"flow_id"`
		ClientID string `json:"client_id"`
		Consent  bool   `json:"consent"`
	}
	d := s.domain(r)
	if d == nil || json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&in) != nil {
		ko(w, http.StatusOK, "Operation failed.")
		return
	}
	ctx := r.Context()
	_, u, _, err := s.session(r, d)
	var g *grant
	if err == nil {
		g, err = s.oidc.grants.find(ctx, kindConsent, in.FlowID)
	}
	if err != nil || g == nil || u.Level < levelOne || g.Client != in.ClientID {
		ko(w, http.StatusOK, "Operation failed.")
		return
	}
	if g.Subject, err = s.oidc.grants.subject(ctx, u.Username); err == nil {
		g.Consented = in.Consent
		err = s.oidc.grants.update(ctx, kindConsent, in.FlowID, g)
	}
	if err != nil {
		ko(w, http.StatusOK, "Operation failed.")
		return
	}
	to := issuer(r) + "/api/oidc/authorization?" + g.Query + "&consent_id=" + url.QueryEscape(in.FlowID)
	writeJSON(w, http.StatusOK, map[string]any{"status": "OK", "data": map[string]string{"redirect_uri": to}})
}

func tokenError(w http.ResponseWriter, status int, code string) {
	writeJSON(w, status, map[string]string{"error": code, "error_description": "refused"})
}

// token is POST /api/oidc/token. The client's secret is computed first, and is most of the time that it takes.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	client := s.oidc.client(id)
	if !basic || client == nil {
		tokenError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if ok, err := verify(client.Secret, secret); err != nil || !ok {
		tokenError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	kind := r.PostFormValue("grant_type")
	var answer map[string]any
	var err error
	switch {
	case !slices.Contains(client.Grants, kind):
		tokenError(w, http.StatusBadRequest, "unauthorized_client")
		return
	case kind == "authorization_code":
		answer, err = s.redeem(r, client)
	case kind == "refresh_token":
		answer, err = s.renew(r, client)
	default:
		tokenError(w, http.StatusBadRequest, "unsupported_grant_type")
		return
	}
	switch {
	case err != nil:
		s.log.Error("Access Request could not be processed", "error", err.Error())
		tokenError(w, http.StatusInternalServerError, "server_error")
	case answer == nil:
		tokenError(w, http.StatusBadRequest, "invalid_grant")
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// redeem is a code for tokens: four look-ups, two commits, and one for the tokens themselves. nil refuses.
func (s *Server) redeem(r *http.Request, client *OIDCClient) (map[string]any, error) {
	ctx, store, signature := r.Context(), s.oidc.grants, signatureOf(r.PostFormValue("code"))
	var g *grant
	for _, kind := range []string{kindCode, kindPKCE, kindOpenID, kindCode} {
		found, err := store.find(ctx, kind, signature)
		if err != nil || found == nil {
			return nil, err
		}
		g = found
	}
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if g.Client != client.ID || g.Redirect != r.PostFormValue("redirect_uri") || g.Expires < time.Now().Unix() || g.Challenge != "" && g.Challenge != b64.EncodeToString(sum[:]) {
		return nil, nil
	}
	for _, kind := range []string{kindPKCE, kindOpenID} {
		if err := store.end(ctx, kind, signature); err != nil {
			return nil, err
		}
	}
	var answer map[string]any
	err := store.inTx(ctx, func(tx grants) (err error) {
		if err := tx.end(ctx, kindCode, signature); err != nil {
			return err
		}
		answer, err = s.tokens(r, tx, g)
		return err
	})
	return answer, err
}

// renew is a refresh token for tokens: two look-ups and one commit. nil refuses.
func (s *Server) renew(r *http.Request, client *OIDCClient) (map[string]any, error) {
	ctx, store, signature := r.Context(), s.oidc.grants, signatureOf(r.PostFormValue("refresh_token"))
	var g *grant
	for range 2 {
		found, err := store.find(ctx, kindRefresh, signature)
		if err != nil || found == nil || found.Client != client.ID || found.Expires < time.Now().Unix() {
			return nil, err
		}
		g = found
	}
	var answer map[string]any
	err := store.inTx(ctx, func(tx grants) (err error) {
		for _, kind := range []string{kindAccess, kindRefresh} {
			if err := tx.endAll(ctx, kind, g.Request); err != nil {
				return err
			}
		}
		answer, err = s.tokens(r, tx, g)
		return err
	})
	return answer, err
}

// tokens stores an access token, with offline_access a refresh token too, and is the answer.
func (s *Server) tokens(r *http.Request, store grants, g *grant) (map[string]any, error) {
	now := time.Now()
	kept := *g
	kept.Expires = now.Add(tokenLifespan).Unix()
	access, signature := s.oidc.issue("authelia_at_")
	if err := store.insert(r.Context(), kindAccess, signature, &kept); err != nil {
		return nil, err
	}
	claims := map[string]any{"iss": issuer(r), "sub": g.Subject, "aud": []string{g.Client}, "azp": g.Client, "amr": []string{"pwd", "kba"}, "auth_time": g.AuthTime, "iat": now.Unix(), "exp": now.Add(tokenLifespan).Unix(), "jti": uuid.NewString()}
	if g.Nonce != "" {
		claims["nonce"] = g.Nonce
	}
	idToken, err := s.oidc.sign(claims)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"access_token": access, "token_type": "bearer", "expires_in": int(tokenLifespan.Seconds()) - 1, "scope": g.Scope, "id_token": idToken}
	if slices.Contains(strings.Fields(g.Scope), "offline_access") {
		refresh, signature := s.oidc.issue("authelia_rt_")
		kept.Expires = now.Add(refreshLifespan).Unix()
		if err := store.insert(r.Context(), kindRefresh, signature, &kept); err != nil {
			return nil, err
		}
		answer["refresh_token"] = refresh
	}
	return answer, nil
}

// userinfo is two look-ups.
func (s *Server) userinfo(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g, err := s.oidc.grants.find(r.Context(), kindAccess, signatureOf(token))
	if err == nil && g != nil {
		_, err = s.oidc.grants.username(r.Context(), g.Subject)
	}
	if err != nil || g == nil || g.Expires < time.Now().Unix() {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,error="request_unauthorized"`, issuer(r)))
		tokenError(w, http.StatusUnauthorized, "request_unauthorized")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"sub": g.Subject, "preferred_username": g.Username, "name": g.DisplayName, "email": g.Email, "email_verified": true, "updated_at": time.Now().Unix()})
}
