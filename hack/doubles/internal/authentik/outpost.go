package authentik

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const outpostPath = "/outpost.goauthentik.io"

// outpostState is what the outpost sends through the authorisation and gets back at its callback, as a JWT.
type outpostState struct {
	Issuer   string `json:"iss"`
	SID      string `json:"sid"`
	State    string `json:"state"`
	Redirect string `json:"redirect"`
}

// application is who protects the request's host; the answer is written where nobody does. An outpost with a single
// application has it answer for every host.
func (s *Server) application(w http.ResponseWriter, r *http.Request) *proxyApp {
	host := r.Header.Get("X-Forwarded-Host")
	if host == "" {
		host = r.Host
	}
	app, err := s.embed.app(r.Context(), host)
	if err != nil {
		s.fail(w, r, err)
		return nil
	}
	if app == nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"Message": "no app for hostname", "Host": host, "Detail": "Check the outpost settings and make sure '" + host + "' is included."})
	}
	return app
}

// outpostCheck is /outpost.goauthentik.io/auth/<proxy>: one SELECT for a known session, on a connection of the
// outpost's own pool. Without one nginx is told 401, and the others are sent to the authorisation.
func (s *Server) outpostCheck(proxy string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		app := s.application(w, r)
		if app == nil {
			return
		}
		asked := forwardedURL(proxy, r)
		if asked == nil {
			http.Error(w, "configuration error", http.StatusInternalServerError)
			return
		}
		se, err := s.outpostSession(r, app)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		switch {
		case se.Claims != nil:
			for name, value := range map[string]string{"Username": se.Claims.Username, "Email": se.Claims.Email, "Name": se.Claims.Name, "Uid": se.Claims.Sub,
				"Groups": "", "Jwt": se.Claims.RawToken, "Meta-App": app.Slug, "Meta-Provider": app.Name, "Meta-Outpost": embeddedOutpostName} {
				w.Header().Set("X-Authentik-"+name, value)
			}
			w.WriteHeader(http.StatusOK)
		case proxy == "nginx":
			http.Error(w, "unauthorized request", http.StatusUnauthorized)
		default:
			s.beginOutpostLogin(w, r, app, se, asked.String())
		}
	}
}

// forwardedURL is what the reverse proxy was asked for, as each kind of proxy tells it; nil where it does not.
func forwardedURL(proxy string, r *http.Request) *url.URL {
	raw := ""
	switch proxy {
	case "nginx":
		if raw = r.Header.Get("X-Original-Url"); raw == "" {
			raw = r.Header.Get("X-Original-Uri")
		}
	case "envoy":
		raw = "//" + r.Host + strings.TrimPrefix(r.URL.Path, outpostPath+"/auth/envoy")
	default:
		raw = r.Header.Get("X-Forwarded-Proto") + "://" + r.Header.Get("X-Forwarded-Host") + r.Header.Get("X-Forwarded-Uri")
	}
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return nil
	}
	return u
}

// outpostStart is /outpost.goauthentik.io/start?rd=…; rd may lead to the application only.
func (s *Server) outpostStart(w http.ResponseWriter, r *http.Request) {
	app := s.application(w, r)
	if app == nil {
		return
	}
	se, err := s.outpostSession(r, app)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	redirect := ""
	if u, err := url.Parse(r.URL.Query().Get("rd")); err == nil && u.Host == app.Host {
		redirect = u.String()
	}
	s.beginOutpostLogin(w, r, app, se, redirect)
}

// beginOutpostLogin sends the browser to the provider's authorisation. A session that is new is stored before
// anybody is logged in; from 2026.8 so is one whose row is gone.
func (s *Server) beginOutpostLogin(w http.ResponseWriter, r *http.Request, app *proxyApp, se *outpostSession, redirect string) {
	if se.SID == "" || (s.cfg.SignedOutpost && !se.stored) {
		if se.SID == "" {
			se.SID = randomString(52, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
		}
		if err := s.embed.save(r.Context(), se, app.Validity); err != nil {
			s.fail(w, r, err)
			return
		}
		s.setOutpostCookie(w, app, se, app.Validity)
	}
	state := signJWT(app.CookieSecret, outpostState{Issuer: "goauthentik.io/outpost/" + app.ClientID, SID: se.SID, State: randomString(43, alnum), Redirect: redirect})
	portal, err := url.Parse(app.Portal)
	if err != nil || app.Portal == "" {
		portal = &url.URL{Scheme: "http", Host: "localhost:9000"} // an outpost that was never told sends people there
	}
	to := url.URL{Scheme: portal.Scheme, Host: portal.Host, Path: "/application/o/authorize/", RawQuery: url.Values{
		"client_id": {app.ClientID}, "redirect_uri": {app.callback()}, "response_type": {"code"}, "scope": {"openid profile email ak_proxy entitlements"}, "state": {state}}.Encode()}
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// outpostCallback is /outpost.goauthentik.io/callback: the code is redeemed, and the outpost's session is stored anew
// with who is logged in.
func (s *Server) outpostCallback(w http.ResponseWriter, r *http.Request) {
	app := s.application(w, r)
	if app == nil {
		return
	}
	se, err := s.outpostSession(r, app)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var state outpostState
	if !readJWT(app.CookieSecret, r.URL.Query().Get("state"), &state) || state.Issuer != "goauthentik.io/outpost/"+app.ClientID || se.SID == "" || state.SID != se.SID {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	to := state.Redirect
	if to == "" {
		to = "https://" + app.Host
	}
	if se.Claims, err = s.redeem(r, app, r.URL.Query().Get("code")); err != nil {
		s.fail(w, r, err)
		return
	}
	if se.Claims != nil { // a code that nobody gave out sends the browser back, to begin again
		if err := s.embed.save(r.Context(), se, app.Validity); err != nil {
			s.fail(w, r, err)
			return
		}
		s.setOutpostCookie(w, app, se, app.Validity)
	}
	http.Redirect(w, r, to, http.StatusFound)
}

// redeem is the outpost's request to /application/o/token/: an access token is inserted and the code deleted, each in
// a commit of its own (facts/authentik.md §5.2). nil where there is no such code.
func (s *Server) redeem(r *http.Request, app *proxyApp, code string) (*outpostClaims, error) {
	d, err := s.cfg.open(r.Context(), tokenBudget)
	if err != nil {
		return nil, err
	}
	defer d.close()
	var uid int
	found, err := d.one([]any{&uid}, "SELECT ref_01_id FROM authentik_providers_oauth2_authorizationcode WHERE code = $1 AND ref_02_id = $2 AND expires > now()", code, app.PK)
	if err != nil || !found {
		return nil, err
	}
	u, err := s.userByID(d, uid)
	if err != nil || u == nil {
		return nil, err
	}
	h := sha256.Sum256([]byte(u.UUID.String()))
	claims := &outpostClaims{Sub: hex.EncodeToString(h[:]), Username: u.Username, Email: u.Email, Name: u.Name, Exp: time.Now().Add(app.Validity).Unix()}
	claims.RawToken = signJWT(app.ClientSecret, claims)
	if err := d.fill(2); err != nil {
		return nil, err
	}
	return claims, firstError(
		d.exec("INSERT INTO authentik_providers_oauth2_accesstoken (ref_01_id, ref_02_id, token, expires) VALUES ($1, $2, $3, $4)", u.ID, app.PK, claims.RawToken, time.Now().Add(app.Validity)),
		d.exec("DELETE FROM authentik_providers_oauth2_authorizationcode WHERE code = $1", code),
		d.finish(),
	)
}

// outpostSession is the session of the request's cookie: an empty one without a cookie, and from 2026.8 with one that
// the outpost did not sign.
func (s *Server) outpostSession(r *http.Request, app *proxyApp) (*outpostSession, error) {
	se := &outpostSession{}
	ck, err := r.Cookie(app.cookie())
	if err != nil {
		return se, nil
	}
	se.SID = ck.Value
	if s.cfg.SignedOutpost {
		// The signature, 44 characters, comes before the value.
		if len(se.SID) < 44 || !hmac.Equal([]byte(se.SID[:44]), []byte(signature(app, se.SID[44:]))) {
			se.SID = ""
			return se, nil
		}
		se.SID = se.SID[44:]
	}
	return se, s.embed.load(r.Context(), se)
}

func signature(app *proxyApp, sid string) string {
	m := hmac.New(sha256.New, []byte(app.CookieSecret))
	m.Write([]byte(sid))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

func (s *Server) setOutpostCookie(w http.ResponseWriter, app *proxyApp, se *outpostSession, age time.Duration) {
	value := se.SID
	if s.cfg.SignedOutpost {
		value = signature(app, value) + value
	}
	http.SetCookie(w, &http.Cookie{Name: app.cookie(), Value: value, Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode, MaxAge: int(age.Seconds()) + 1})
}

// signJWT and readJWT are HS256.
func signJWT(key string, claims any) string {
	payload, _ := json.Marshal(claims)
	body := b64.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + b64.EncodeToString(payload)
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(body))
	return body + "." + b64.EncodeToString(m.Sum(nil))
}

func readJWT(key, token string, claims any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(parts[0] + "." + parts[1]))
	if !hmac.Equal([]byte(parts[2]), []byte(b64.EncodeToString(m.Sum(nil)))) {
		return false
	}
	raw, err := b64.DecodeString(parts[1])
	return err == nil && json.Unmarshal(raw, claims) == nil
}

// withTimeout bounds what the outpost asks of its stores beside a request.
func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 10*time.Second)
}
