package authentik

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The cookies, by their real names.
const (
	sessionCookie = "authentik_session"
	csrfCookie    = "authentik_csrf"
	csrfHeader    = "X-Authentik-Csrf"
)

// sessionPadding is how many bytes a session carries beside the double's own state: the pickled plan and its
// history. With it a login writes the measured 50 to 60 kB of WAL (facts/authentik-measured.md §2.1).
const sessionPadding = 4500

// planState is what the double keeps of a flow in the session.
type planState struct {
	Flow   string `json:"authentik/flows/plan,omitempty"` // The product's key.
	Stage  int    `json:"stage"`
	Ident  string `json:"ident,omitempty"`
	UserID int    `json:"uid,omitempty"`
	Fails  int    `json:"fails,omitempty"`
	Next   string `json:"next,omitempty"`
	// Authorize is the query of an authorisation that the flow is about to grant.
	Authorize string `json:"authorize,omitempty"`
	// Consent is the token of the page that asks for consent, and Consented that it was given.
	Consent   string `json:"consent,omitempty"`
	Consented bool   `json:"consented,omitempty"`
	Padding   string `json:"padding,omitempty"`
}

// A session is a row of authentik_core_session, and the user that is logged in with it.
type session struct {
	Key    string
	State  planState
	User   *user
	stored bool
}

// user is what requests need of authentik_core_user.
type user struct {
	ID       int
	Username string
	Name     string
	Email    string
	UUID     uuid.UUID
	Active   bool
	Super    bool
	Path     string
	Type     string
	Attrs    json.RawMessage
}

const sessionKeyAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

func newSessionKey() string { return randomString(32, sessionKeyAlphabet) }

// loadSession reads the session of the request's cookie in one statement, with the user. A cookie that does not
// verify, or a session that is gone, is an anonymous request.
func (s *Server) loadSession(d *reqDB, r *http.Request) (*session, error) {
	ck, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil, nil
	}
	key := s.decodeSession(ck.Value)
	if key == "" {
		return nil, nil
	}
	out := &session{Key: key, stored: true}
	var data []byte
	var uid *int
	var username, name, email, path, kind *string
	var uu *uuid.UUID
	var active, super *bool
	var attrs *string
	found, err := d.one([]any{&data, &uid, &username, &name, &email, &uu, &active, &super, &path, &kind, &attrs}, `SELECT s.session_data, u.id, u.username, u.name, u.email, u.uuid, u.is_active, `+superuser+`, u.path, u.type, u.attributes::text
FROM authentik_core_session s LEFT OUTER JOIN authentik_core_authenticatedsession a ON a.session_id = s.session_key LEFT OUTER JOIN authentik_core_user u ON u.id = a.user_id
WHERE s.session_key = $1 AND s.expires > now()`, key)
	if err != nil || !found {
		return nil, err
	}
	_ = json.Unmarshal(data, &out.State)
	out.State.Padding = ""
	if uid != nil && *active {
		out.User = &user{ID: *uid, Username: *username, Name: *name, Email: *email, UUID: *uu, Active: true, Super: super != nil && *super, Path: *path, Type: *kind, Attrs: json.RawMessage(*attrs)}
	}
	return out, nil
}

const superuser = `EXISTS (SELECT FROM authentik_core_user_ak_groups m JOIN authentik_core_group g ON g.group_uuid = m.group_id WHERE m.user_id = u.id AND g.is_superuser)`

// save writes the whole session, as the product does at each request to the executor: INSERT the first time.
func (s *session) save(d *reqDB, r *http.Request) error {
	st := s.State
	st.Padding = randomString(sessionPadding, alnum)
	data, _ := json.Marshal(st)
	if s.stored {
		return d.exec(`UPDATE authentik_core_session SET expires = $2, session_data = $3, last_ip = $4, last_user_agent = $5, last_used = now() WHERE session_key = $1`,
			s.Key, time.Now().Add(24*time.Hour), data, clientIP(r), r.UserAgent())
	}
	s.stored = true
	return d.exec(`INSERT INTO authentik_core_session (session_key, expires, expiring, session_data, last_ip, last_user_agent, last_used) VALUES ($1, $2, true, $3, $4, $5, now())`,
		s.Key, time.Now().Add(24*time.Hour), data, clientIP(r), r.UserAgent())
}

// signingKey is the product's: the hex SHA-512 of the secret key.
func (s *Server) signingKey() []byte {
	h := sha512.Sum512([]byte(s.cfg.SecretKey))
	return []byte(hex.EncodeToString(h[:]))
}

var b64 = base64.RawURLEncoding

// encodeSession wraps the session key in a JWT (HS256), as the product's cookie does.
func (s *Server) encodeSession(se *session) string {
	sub := "anonymous"
	if se.User != nil {
		h := sha256.Sum256([]byte(se.User.UUID.String()))
		sub = hex.EncodeToString(h[:])
	}
	payload, _ := json.Marshal(map[string]any{"sid": se.Key, "iss": "authentik", "sub": sub, "authenticated": se.User != nil, "acr": "goauthentik.io/core/default"})
	body := b64.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + b64.EncodeToString(payload)
	return body + "." + s.sign(body)
}

func (s *Server) sign(body string) string {
	m := hmac.New(sha256.New, s.signingKey())
	m.Write([]byte(body))
	return b64.EncodeToString(m.Sum(nil))
}

// decodeSession returns the session key of a cookie, or nothing.
func (s *Server) decodeSession(token string) string {
	i := strings.LastIndexByte(token, '.')
	if i < 0 || !hmac.Equal([]byte(s.sign(token[:i])), []byte(token[i+1:])) {
		return ""
	}
	_, p, ok := strings.Cut(token[:i], ".")
	if !ok {
		return ""
	}
	raw, err := b64.DecodeString(p)
	if err != nil {
		return ""
	}
	var claims struct {
		SID string `json:"sid"`
	}
	_ = json.Unmarshal(raw, &claims)
	return claims.SID
}

// setCookies answers with the session cookie and, where the request had none, the CSRF cookie.
func (s *Server) setCookies(w http.ResponseWriter, r *http.Request, se *session, rotate bool) {
	secure := isTLS(r)
	same := http.SameSiteLaxMode
	if secure {
		same = http.SameSiteNoneMode
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Value: s.encodeSession(se), Path: "/", HttpOnly: true, Secure: secure, SameSite: same})
	if ck, err := r.Cookie(csrfCookie); err != nil || ck.Value == "" || rotate {
		http.SetCookie(w, &http.Cookie{Name: csrfCookie, Value: randomString(32, alnum), Path: "/", Secure: secure, SameSite: http.SameSiteLaxMode, MaxAge: 31449600})
	}
	w.Header().Set("Vary", "Cookie")
}

func isTLS(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
