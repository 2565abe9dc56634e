package authentik

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The statements of these requests were never measured; their writes are those of facts/authentik.md §5.2.
var (
	refreshBudget  = budget{45, 20}
	userinfoBudget = budget{25, 11}
	jwksBudget     = budget{15, 7}
)

// oidcClient is a provider of OpenID Connect with its application and its key.
type oidcClient struct {
	PK              int
	Slug, Secret    string
	Redirects       *string
	Access, Refresh *string
	Grants          []string
	key             *signingKey
}

// client finds a provider by its client ID or by its application's slug; nil where there is none.
func (s *Server) client(d *reqDB, where, value string) (*oidcClient, error) {
	c, pem := &oidcClient{}, (*string)(nil)
	found, err := d.one([]any{&c.PK, &c.Slug, &c.Secret, &c.Redirects, &c.Access, &c.Refresh, &c.Grants, &pem}, `SELECT c.provider_ptr_id, a.slug, c.client_secret, c._redirect_uris::text, c.access_token_validity, c.refresh_token_validity, c.grant_types, k.key_data
FROM authentik_providers_oauth2_oauth2provider c JOIN authentik_core_application a ON a.provider_id = c.provider_ptr_id LEFT JOIN authentik_crypto_certificatekeypair k ON k.certificatekeypair_uuid = c.ref_01_id WHERE c.client_secret IS NOT NULL AND `+where+` = $1`, value)
	if err != nil || !found {
		return nil, err
	}
	if pem != nil {
		c.key, err = readKey(*pem)
	}
	return c, err
}

// redirectAllowed compares letter by letter; the double knows no patterns.
func redirectAllowed(allowed *string, uri string) bool {
	var list []struct {
		URL string `json:"url"`
	}
	return allowed != nil && json.Unmarshal([]byte(*allowed), &list) == nil && slices.ContainsFunc(list, func(one struct {
		URL string `json:"url"`
	}) bool {
		return one.URL == uri
	})
}

func tokenError(w http.ResponseWriter, code string) {
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": "refused", "request_id": ""})
}

// issuer is what the request was made to, as the reverse proxy in front tells it.
func issuer(r *http.Request, slug string) string {
	host := r.Header.Get("X-Forwarded-Host")
	if host == "" {
		host = r.Host
	}
	scheme := "http"
	if isTLS(r) {
		scheme = "https"
	}
	return scheme + "://" + host + "/application/o/" + slug + "/"
}

// oidcToken is POST /application/o/token/: a code for tokens, or a refresh token for new ones.
func (s *Server) oidcToken(w http.ResponseWriter, r *http.Request) {
	b := tokenBudget
	if r.PostFormValue("grant_type") == "refresh_token" {
		b = refreshBudget
	}
	d, err := s.cfg.open(r.Context(), b)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	c, err := s.client(d, "c.client_id", id)
	if err == nil {
		switch {
		case c == nil || c.Secret != secret:
			tokenError(w, "invalid_client")
			return
		case s.cfg.GrantTypes && !slices.Contains(c.Grants, r.PostFormValue("grant_type")):
			tokenError(w, "unauthorized_client")
			return
		case r.PostFormValue("grant_type") == "authorization_code":
			err = s.redeemCode(w, r, d, c)
		case r.PostFormValue("grant_type") == "refresh_token":
			err = s.refreshTokens(w, r, d, c)
		default:
			tokenError(w, "unsupported_grant_type")
			return
		}
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// redeemCode inserts an access token, and with offline_access a refresh token, and deletes the code: two or three
// commits.
func (s *Server) redeemCode(w http.ResponseWriter, r *http.Request, d *reqDB, c *oidcClient) error {
	var uid int
	var scope, nonce, challenge, method string
	found, err := d.one([]any{&uid, &scope, &nonce, &challenge, &method}, "SELECT ref_01_id, COALESCE(_scope, ''), COALESCE(nonce, ''), COALESCE(code_challenge, ''), COALESCE(code_challenge_method, '') FROM authentik_providers_oauth2_authorizationcode WHERE code = $1 AND ref_02_id = $2 AND expires > now()", r.PostFormValue("code"), c.PK)
	if err != nil {
		return err
	}
	if !found || !redirectAllowed(c.Redirects, r.PostFormValue("redirect_uri")) || !challenged(challenge, method, r.PostFormValue("code_verifier")) {
		tokenError(w, "invalid_grant")
		return nil
	}
	answer, err := s.issue(r, d, c, uid, scope, nonce, 4)
	if err != nil {
		return err
	}
	if err := firstError(d.exec("DELETE FROM authentik_providers_oauth2_authorizationcode WHERE code = $1", r.PostFormValue("code")), d.finish()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// refreshTokens inserts both tokens and revokes the old refresh token: three commits.
func (s *Server) refreshTokens(w http.ResponseWriter, r *http.Request, d *reqDB, c *oidcClient) error {
	var row, uid int
	var scope string
	found, err := d.one([]any{&row, &uid, &scope}, "SELECT id, ref_01_id, _scope FROM authentik_providers_oauth2_refreshtoken WHERE token = $1 AND ref_02_id = $2 AND expires > now() AND NOT revoked", r.PostFormValue("refresh_token"), c.PK)
	if err != nil {
		return err
	}
	if !found {
		tokenError(w, "invalid_grant")
		return nil
	}
	answer, err := s.issue(r, d, c, uid, scope, "", 4)
	if err != nil {
		return err
	}
	if err := firstError(d.exec("UPDATE authentik_providers_oauth2_refreshtoken SET revoked = true WHERE id = $1", row), d.finish()); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// issue inserts the tokens and is what the client is told.
func (s *Server) issue(r *http.Request, d *reqDB, c *oidcClient, uid int, scope, nonce string, reserve int) (map[string]any, error) {
	u, err := s.userByID(d, uid)
	if err != nil {
		return nil, err
	}
	if u == nil || c.key == nil {
		return nil, errNoSubject
	}
	now, lasts := time.Now(), validity(*c.Access)
	claims := map[string]any{"iss": issuer(r, c.Slug), "sub": subject(u), "aud": r.PostFormValue("client_id"), "exp": now.Add(lasts).Unix(), "iat": now.Unix(), "auth_time": now.Unix(), "acr": "goauthentik.io/providers/oauth2/default",
		"email": u.Email, "email_verified": true, "name": u.Name, "preferred_username": u.Username, "jti": randomString(32, alnum)}
	if id, _, basic := r.BasicAuth(); basic {
		claims["aud"] = id
	}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	idToken, err := c.key.sign(claims)
	if err != nil {
		return nil, err
	}
	claims["azp"], claims["uid"] = claims["aud"], randomString(40, alnum)
	access, err := c.key.sign(claims)
	if err != nil {
		return nil, err
	}
	kept, _ := json.Marshal(claims)
	err = firstError(d.fill(reserve),
		d.exec("INSERT INTO authentik_providers_oauth2_accesstoken (ref_01_id, ref_02_id, token, expires, _scope, _id_token) VALUES ($1, $2, $3, $4, $5, $6)", u.ID, c.PK, access, now.Add(lasts), scope, string(kept)))
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "scope": scope, "expires_in": int(lasts.Seconds()), "id_token": idToken}
	if slices.Contains(strings.Fields(scope), "offline_access") && err == nil {
		token := randomString(128, alnum)
		answer["refresh_token"] = token
		err = d.exec("INSERT INTO authentik_providers_oauth2_refreshtoken (ref_01_id, ref_02_id, token, expires, _scope, _id_token) VALUES ($1, $2, $3, $4, $5, $6)", u.ID, c.PK, token, now.Add(validity(*c.Refresh)), scope, string(kept))
	}
	return answer, err
}

func subject(u *user) string {
	h := sha256.Sum256([]byte(u.UUID.String()))
	return hex.EncodeToString(h[:])
}

// oidcUserinfo is /application/o/userinfo/: it reads, and writes nothing.
func (s *Server) oidcUserinfo(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), userinfoBudget)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var uid int
	found := false
	if bearer {
		found, err = d.one([]any{&uid}, "SELECT ref_01_id FROM authentik_providers_oauth2_accesstoken WHERE token = $1 AND expires > now() AND _scope LIKE '%openid%'", token)
	}
	var u *user
	if err == nil && found {
		u, err = s.userByID(d, uid)
	}
	if err == nil {
		err = d.finish()
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
	case u == nil:
		w.Header().Set("WWW-Authenticate", `error="invalid_token", error_description="The access token provided is expired, revoked, malformed, or invalid for other reasons"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		writeJSON(w, http.StatusOK, map[string]any{"sub": subject(u), "email": u.Email, "email_verified": true, "name": u.Name, "given_name": u.Name, "preferred_username": u.Username, "nickname": u.Username, "groups": []string{}})
	}
}

// withClient answers about the application of the path; it writes nothing.
func (s *Server) withClient(w http.ResponseWriter, r *http.Request, answer func(*oidcClient) any) {
	d, err := s.cfg.open(r.Context(), jwksBudget)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	c, err := s.client(d, "a.slug", r.PathValue("slug"))
	if err == nil {
		err = d.finish()
	}
	switch {
	case err != nil:
		s.fail(w, r, err)
	case c == nil:
		writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not found."})
	default:
		writeJSON(w, http.StatusOK, answer(c))
	}
}

func (s *Server) oidcJWKS(w http.ResponseWriter, r *http.Request) {
	s.withClient(w, r, func(c *oidcClient) any {
		if c.key == nil {
			return map[string]any{}
		}
		return map[string]any{"keys": []any{c.key.jwk()}}
	})
}

func (s *Server) oidcDiscovery(w http.ResponseWriter, r *http.Request) {
	s.withClient(w, r, func(c *oidcClient) any {
		iss := issuer(r, c.Slug)
		base := strings.TrimSuffix(iss, url.PathEscape(c.Slug)+"/")
		return map[string]any{"issuer": iss, "authorization_endpoint": base + "authorize/", "token_endpoint": base + "token/", "userinfo_endpoint": base + "userinfo/", "jwks_uri": iss + "jwks/",
			"response_types_supported": []string{"code"}, "grant_types_supported": []string{"authorization_code", "refresh_token"}, "id_token_signing_alg_values_supported": []string{"RS256"},
			"subject_types_supported": []string{"public"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post", "client_secret_basic"}, "scopes_supported": oidcScopes, "code_challenge_methods_supported": []string{"plain", "S256"}}
	})
}
