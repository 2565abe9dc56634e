package conformance

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// relyingParty is a client of OpenID Connect and where its provider answers.
type relyingParty struct {
	id, secret, redirect string
	host, issuer         string
	authorize, token     string
	userinfo, jwks       string
}

var b64 = base64.RawURLEncoding

func nonsense() string {
	b := make([]byte, 24)
	_, _ = rand.Read(b)
	return b64.EncodeToString(b)
}

// ask makes a request as the reverse proxy in front forwards it.
func (p *relyingParty) ask(c *client, method, path string, body any, header ...string) (*answer, error) {
	return c.do(method, path, body, append([]string{"Host", p.host, "X-Forwarded-Host", p.host, "X-Forwarded-Proto", "https"}, header...)...)
}

func (p *relyingParty) tokens(s *suite, secret string, form url.Values) (*answer, error) {
	return p.ask(s.client(), http.MethodPost, p.token, form, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(p.id)+":"+url.QueryEscape(secret))))
}

// request is an authorization request and what its application keeps.
type request struct{ state, nonce, verifier, path string }

func (p *relyingParty) request(scope, redirect string) request {
	r := request{state: nonsense(), nonce: nonsense(), verifier: nonsense() + nonsense()}
	sum := sha256.Sum256([]byte(r.verifier))
	r.path = p.authorize + "?" + url.Values{"response_type": {"code"}, "client_id": {p.id}, "redirect_uri": {redirect}, "scope": {scope}, "state": {r.state}, "nonce": {r.nonce},
		"code_challenge": {b64.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}}.Encode()
	return r
}

// code follows an authorization to its end and consents where it is asked; consents is how often.
func (p *relyingParty) code(c *client, r request) (code string, hops, consents int, err error) {
	a, err := p.ask(c, http.MethodGet, r.path, nil)
	for hops = 1; err == nil && hops <= maxHops; hops++ {
		to := a.header.Get("Location")
		if a.str("component") == "xak-flow-redirect" {
			to = a.str("to")
		}
		if data, ok := a.body["data"].(map[string]any); ok && to == "" {
			to, _ = data["redirect_uri"].(string)
		}
		u, e := url.Parse(to)
		if e != nil {
			return "", hops, consents, e
		}
		path := u.RequestURI()
		switch flow, page := strings.CutPrefix(u.Path, "/if/flow/"); {
		case strings.HasPrefix(to, p.redirect):
			if u.Query().Get("state") != r.state || u.Query().Get("code") == "" {
				return "", hops, consents, fmt.Errorf("sent back with state %v, error %q", u.Query().Get("state") == r.state, u.Query().Get("error"))
			}
			return u.Query().Get("code"), hops, consents, nil
		case a.str("component") == "ak-stage-consent":
			consents++
			a, err = p.ask(c, http.MethodPost, a.path, map[string]string{"component": "ak-stage-consent", "token": a.str("token")},
				"X-Authentik-CSRF", c.cookies["authentik_csrf"], "Origin", "https://"+p.host, "Referer", "https://"+p.host+"/")
		case page:
			a, err = p.ask(c, http.MethodGet, "/api/v3/flows/executor/"+flow+"?query="+url.QueryEscape(u.RawQuery), nil)
		case strings.HasPrefix(u.Path, "/consent/") && u.Query().Get("flow_id") != "":
			consents++
			a, err = p.ask(c, http.MethodPost, "/api/oidc/consent", map[string]any{"flow_id": u.Query().Get("flow_id"), "client_id": p.id, "consent": true, "pre_configure": false})
		case to != "" && (strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, p.authorize)):
			a, err = p.ask(c, http.MethodGet, path, nil)
		default:
			return "", hops, consents, fmt.Errorf("status %d, component %q, to %q", a.status, a.str("component"), u.Path)
		}
	}
	return "", hops, consents, fmt.Errorf("no code after %d hops: %v", hops, err)
}

// codeFlow goes through OpenID Connect's code flow with a client whose consent is implicit.
func (s *suite) codeFlow(p *relyingParty, login func() (*client, error)) error {
	anonymous := p.request("openid", p.redirect)
	a, err := p.ask(s.client(), http.MethodGet, anonymous.path, nil)
	if err != nil {
		return err
	}
	s.check("authorization, anonymous", a.status == 302 && !strings.HasPrefix(a.header.Get("Location"), p.redirect), "status %d", a.status)
	c, err := login()
	if err != nil {
		s.check("login for OpenID Connect", false, "%v", err)
		return nil
	}
	if a, err = p.ask(c, http.MethodGet, p.request("openid", "https://elsewhere.example.com/callback").path, nil); err != nil {
		return err
	}
	s.check("authorization for another redirect URI", !strings.HasPrefix(a.header.Get("Location"), "https://elsewhere"), "status %d", a.status)

	r := p.request("openid profile email", p.redirect)
	code, hops, consents, err := p.code(c, r)
	if !s.check("authorization: a code without a question", err == nil && consents == 0, "%d requests, %d consents, %v", hops, consents, err) {
		return nil
	}
	form := func(code, verifier string) url.Values {
		return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.redirect}, "code_verifier": {verifier}}
	}
	if a, err = p.tokens(s, p.secret+"x", form(code, r.verifier)); err != nil {
		return err
	}
	s.check("token, wrong secret", a.status >= 400 && a.str("error") == "invalid_client", "status %d, %q", a.status, a.str("error"))
	if a, err = p.tokens(s, p.secret, form(code, r.verifier)); err != nil {
		return err
	}
	if !s.check("token", a.status == 200 && a.str("access_token") != "" && strings.EqualFold(a.str("token_type"), "bearer"), "status %d, error %q", a.status, a.str("error")) {
		return nil
	}
	s.check("no refresh token without offline_access", a.str("refresh_token") == "", "")
	claims, err := s.idToken(p, a.str("id_token"))
	if err != nil {
		return err
	}
	s.check("ID token", claims["iss"] == p.issuer && fmt.Sprint(claims["nonce"]) == r.nonce && strings.Contains(fmt.Sprint(claims["aud"]), p.id) && claims["sub"] != nil, "iss %v, aud %v", claims["iss"], claims["aud"])
	who, err := p.ask(s.client(), http.MethodGet, p.userinfo, nil, "Authorization", "Bearer "+a.str("access_token"))
	if err != nil {
		return err
	}
	s.check("userinfo", who.status == 200 && who.body["sub"] == claims["sub"] && who.str("preferred_username") != "", "status %d", who.status)
	if who, err = p.ask(s.client(), http.MethodGet, p.userinfo, nil, "Authorization", "Bearer nobody"); err != nil {
		return err
	}
	s.check("userinfo, wrong token", who.status == 401, "status %d, want 401", who.status)
	if a, err = p.tokens(s, p.secret, form(code, r.verifier)); err != nil {
		return err
	}
	s.check("token, a code for the second time", a.status == 400 && a.str("error") == "invalid_grant", "status %d, %q", a.status, a.str("error"))
	r = p.request("openid", p.redirect)
	if code, _, _, err = p.code(c, r); err == nil {
		a, err = p.tokens(s, p.secret, form(code, nonsense()+nonsense()))
	}
	if err != nil {
		return err
	}
	s.check("token, another verifier", a.status == 400 && a.str("error") == "invalid_grant", "status %d, %q", a.status, a.str("error"))
	return s.refresh(p, c, form)
}

// refresh: with offline_access both products ask for consent, whatever the client's mode.
func (s *suite) refresh(p *relyingParty, c *client, form func(code, verifier string) url.Values) error {
	r := p.request("openid profile email offline_access", p.redirect)
	code, hops, consents, err := p.code(c, r)
	if !s.check("authorization with offline_access: consent is asked for", err == nil && consents == 1, "%d requests, %d consents, %v", hops, consents, err) {
		return nil
	}
	first, err := p.tokens(s, p.secret, form(code, r.verifier))
	if err != nil {
		return err
	}
	if !s.check("refresh token", first.status == 200 && first.str("refresh_token") != "", "status %d", first.status) {
		return nil
	}
	again := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.str("refresh_token")}}
	second, err := p.tokens(s, p.secret, again)
	if err != nil {
		return err
	}
	s.check("refresh", second.status == 200 && second.str("access_token") != "" && second.str("access_token") != first.str("access_token") && second.str("refresh_token") != "", "status %d, error %q", second.status, second.str("error"))
	if second, err = p.tokens(s, p.secret, again); err != nil {
		return err
	}
	s.check("refresh, an old token", second.status == 400 && second.str("error") == "invalid_grant", "status %d, %q", second.status, second.str("error"))
	return nil
}

// idToken checks an ID token's signature by the published keys and is its claims.
func (s *suite) idToken(p *relyingParty, token string) (claims map[string]any, err error) {
	a, err := p.ask(s.client(), http.MethodGet, p.jwks, nil)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		s.check("ID token has three parts", false, "%d parts", len(parts))
		return nil, nil
	}
	var head struct{ Alg, Kid string }
	decode := func(part string, into any) {
		raw, _ := b64.DecodeString(part)
		_ = json.Unmarshal(raw, into)
	}
	decode(parts[0], &head)
	decode(parts[1], &claims)
	signature, _ := b64.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	valid := false
	keys, _ := a.body["keys"].([]any)
	for _, one := range keys {
		key, _ := one.(map[string]any)
		n, _ := b64.DecodeString(fmt.Sprint(key["n"]))
		e, _ := b64.DecodeString(fmt.Sprint(key["e"]))
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		valid = valid || key["kid"] == head.Kid && rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
	}
	s.check("ID token is signed by a published key", a.status == 200 && head.Alg == "RS256" && valid, "alg %q, %d keys", head.Alg, len(keys))
	exp, _ := claims["exp"].(float64)
	s.check("ID token has not expired", exp > float64(time.Now().Unix()), "exp %.0f", exp)
	return claims, nil
}
