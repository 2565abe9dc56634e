package authentik

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

const loginFlow = "default-authentication-flow"

// The stages of the default flow, in order (blueprints/default/flow-default-authentication-flow.yaml).
const (
	stageIdentification = iota
	stagePassword
	stageMFA
	stageLogin
)

// stepBudgets are the statements of a login's six requests (facts/authentik-measured.md §2.1): total, and how many
// of them SET search_path. The index is the stage, and whether the request is a POST.
var stepBudgets = map[int]map[string]budget{
	stageIdentification: {"GET": {39, 18}, "POST": {27, 12}},
	stagePassword:       {"GET": {33, 15}, "POST": {31, 14}},
	stageMFA:            {"GET": {47, 22}, "POST": {47, 22}},
	stageLogin:          {"GET": {111, 50}, "POST": {111, 50}},
}

// failedAttempts is how many wrong passwords the default password stage takes before the flow is cancelled.
const failedAttempts = 5

// deferredChecks is how many statements the deferred triggers of a login's last request run at commit.
const deferredChecks = 7

// less takes the throttle's two statements, and their SETs, out of a budget where the throttle is no row.
func (s *Server) less(b budget) budget {
	if s.cfg.Redis || !s.cfg.ThrottleInCache {
		return budget{b.total - 4, b.sets - 2}
	}
	return b
}

// executor is /api/v3/flows/executor/<slug>/.
func (s *Server) executor(w http.ResponseWriter, r *http.Request) {
	slug := r.PathValue("slug")
	switch slug {
	case loginFlow:
	case "default-invalidation-flow":
		s.invalidate(w, r)
		return
	case authorizationFlow:
		s.executeAuthorization(w, r)
		return
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"detail": "No Flow matches the given query."})
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		methodNotAllowed(w, r)
		return
	}
	// The connection is opened before the stage is known: the session holds it. The budget is set after that.
	d, err := s.cfg.open(r.Context(), budget{2000, 1000})
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
	if se != nil && se.User != nil && r.Method == http.MethodPost && !csrfOK(r) {
		writeJSON(w, http.StatusForbidden, map[string]string{"detail": "CSRF Failed: CSRF token missing."})
		return
	}
	if se == nil {
		se = &session{Key: newSessionKey()}
	}
	if se.State.Flow != slug {
		se.State = planState{Flow: slug}
	}
	if q, err := url.ParseQuery(r.URL.Query().Get("query")); err == nil && q.Get("next") != "" {
		se.State.Next = q.Get("next")
	}
	used := budget{1000 - d.others + 1000 - d.sets, 1000 - d.sets}
	b := s.less(stepBudgets[se.State.Stage][r.Method])
	d.others, d.sets = b.total-b.sets-(used.total-used.sets), b.sets-used.sets
	if err := s.step(w, r, d, se); err != nil {
		s.fail(w, r, err)
	}
}

// step answers one request of a login. What it writes, and in how many commits, is the table of
// facts/authentik-measured.md §2.1.
func (s *Server) step(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	if err := d.all(nil, s.stageSQL, idStage(se.State.Stage)); err != nil {
		return err
	}
	post := r.Method == http.MethodPost
	var body struct {
		Component string  `json:"component"`
		UIDField  *string `json:"uid_field"`
		Password  *string `json:"password"`
	}
	if post {
		if err := readBody(r, &body); err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
	}
	// The policies of a stage binding are evaluated when the plan reaches it: one result is cached for this session.
	if !(se.State.Stage == stageIdentification) && se.State.Stage != stageLogin {
		if err := s.cache.set(d, policyPrefix+uuid.NewString()+"/"+se.Key, pickle(policyPadding), 5*time.Minute); err != nil {
			return err
		}
	}
	if s.cfg.ThrottleInCache {
		if err := s.cache.throttle(d, clientIP(r)); err != nil {
			return err
		}
	}
	switch {
	case se.State.Stage == stageIdentification && !post:
		if err := s.plan(d); err != nil {
			return err
		}
		if err := d.all(nil, s.sourcesSQL, idStage(stageIdentification)); err != nil {
			return err
		}
		return s.challenge(w, r, d, se, nil)
	case se.State.Stage == stageIdentification:
		if body.UIDField == nil || *body.UIDField == "" {
			return s.challenge(w, r, d, se, map[string]any{"non_field_errors": []any{fieldError("No identification data provided.", "invalid")}})
		}
		found, err := d.one([]any{&se.State.UserID}, "SELECT id FROM authentik_core_user WHERE UPPER(username) = UPPER($1) OR UPPER(email) = UPPER($1) ORDER BY id LIMIT 1", *body.UIDField)
		if err != nil {
			return err
		}
		if !found { // 90 to 210 ms against user enumeration, then go on as if the user were there
			se.State.UserID = 0
			time.Sleep(time.Duration(90+30*randomInt(5)) * time.Millisecond)
		}
		se.State.Ident, se.State.Stage = *body.UIDField, stagePassword
		return s.again(w, r, d, se)
	case se.State.Stage == stagePassword && !post:
		return s.challenge(w, r, d, se, nil)
	case se.State.Stage == stagePassword:
		if body.Password == nil || *body.Password == "" {
			return s.challenge(w, r, d, se, map[string]any{"password": []any{fieldError("This field is required.", "required")}})
		}
		var digest string
		active := false
		if _, err := d.one([]any{&digest, &active}, "SELECT password, is_active FROM authentik_core_user WHERE id = $1", se.State.UserID); err != nil {
			return err
		}
		if !s.cfg.CheckPassword(*body.Password, digest) || !active {
			return s.wrongPassword(w, r, d, se)
		}
		se.State.Stage = stageMFA
		return s.again(w, r, d, se)
	case se.State.Stage == stageMFA: // no device is configured: the stage is skipped by a redirect
		se.State.Stage = stageLogin
		return s.again(w, r, d, se)
	default:
		return s.login(w, r, d, se)
	}
}

// plan reads the flow plan of anonymous users from the cache and makes it again every 300 s.
func (s *Server) plan(d *reqDB) error {
	key := planPrefix + idFlow.String()
	_, ok, err := s.cache.get(d, key)
	if err != nil || ok {
		return err
	}
	d.others, d.sets = d.others+1, d.sets+1 // beyond the steady count
	return s.cache.set(d, key, pickle(1500), 5*time.Minute)
}

// challenge saves the session and answers with the stage's challenge.
func (s *Server) challenge(w http.ResponseWriter, r *http.Request, d *reqDB, se *session, errs map[string]any) error {
	if err := s.save(w, r, d, se); err != nil {
		return err
	}
	c := map[string]any{
		"flow_info": map[string]any{"title": "Welcome to authentik!", "background": "/static/dist/assets/images/flow_background.jpg", "cancel_url": "/flows/-/cancel/", "layout": "stacked"},
	}
	if se.State.Stage == stageIdentification {
		for k, v := range map[string]any{"component": "ak-stage-identification", "user_fields": []string{"email", "username"}, "password_fields": false, "allow_show_password": false,
			"flow_designation": "authentication", "captcha_stage": nil, "primary_action": "Log in", "sources": []any{}, "show_source_labels": false, "enable_remember_me": false} {
			c[k] = v
		}
	} else {
		for k, v := range map[string]any{"component": "ak-stage-password", "pending_user": se.State.Ident, "pending_user_avatar": avatar, "allow_show_password": false} {
			c[k] = v
		}
	}
	if errs != nil {
		c["response_errors"] = errs
	}
	writeJSON(w, http.StatusOK, c)
	return nil
}

// again saves the session and sends the client to the same URL for the next challenge.
func (s *Server) again(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	if err := s.save(w, r, d, se); err != nil {
		return err
	}
	w.Header().Set("Location", r.URL.RequestURI())
	w.WriteHeader(http.StatusFound)
	return nil
}

// save sends the fillers and the last write, the session.
func (s *Server) save(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	if err := d.fill(1); err != nil {
		return err
	}
	if err := se.save(d, r); err != nil {
		return err
	}
	if err := d.finish(); err != nil {
		return err
	}
	s.setCookies(w, r, se, false)
	return nil
}

// wrongPassword records the failure (event with its task, reputation) and answers with the same challenge. Its
// counts were not measured: they are those of the writes that the code is known to make.
func (s *Server) wrongPassword(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	err := firstError(
		s.event(d, r, "login_failed", map[string]any{"username": se.State.Ident}, nil),
		s.reputation(d, r, se.State.Ident, -1),
	)
	if err != nil {
		return err
	}
	se.State.Fails++
	if se.State.Fails >= failedAttempts {
		se.State = planState{}
		if err := s.save(w, r, d, se); err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, map[string]any{"component": "ak-stage-access-denied", "error_message": "Exceeded allowed login attempts."})
		return nil
	}
	return s.challenge(w, r, d, se, map[string]any{"password": []any{fieldError("Invalid password", "invalid")}})
}

// login is the sixth request: eleven commits that wait.
func (s *Server) login(w http.ResponseWriter, r *http.Request, d *reqDB, se *session) error {
	u, err := s.userByID(d, se.State.UserID)
	if err != nil {
		return err
	}
	if u == nil {
		se.State = planState{}
		if err := s.save(w, r, d, se); err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, map[string]any{"component": "ak-stage-access-denied", "error_message": "No pending user."})
		return nil
	}
	// The deferred foreign keys' checks and the NOTIFY trigger run at commit, outside any statement, so
	// pg_stat_statements counts them as statements of their own; the measured 111 contain the product's.
	d.others -= deferredChecks
	if err := d.fill(30); err != nil {
		return err
	}
	// A login gets a new session key: the new row is inserted, then the old one deleted.
	next := &session{Key: newSessionKey(), State: planState{Flow: loginFlow, Stage: stageLogin, UserID: u.ID}, User: u}
	to := "/"
	if strings.HasPrefix(se.State.Next, "/") && !strings.HasPrefix(se.State.Next, "//") {
		to = se.State.Next
	}
	if se.User != nil { // logged in already: not one of the measured logins
		if err := d.exec("DELETE FROM authentik_core_authenticatedsession WHERE session_id = $1", se.Key); err != nil {
			return err
		}
	}
	err = firstError(
		next.save(d, r),
		d.exec("DELETE FROM authentik_core_session WHERE session_key = $1", se.Key),
		d.exec("INSERT INTO authentik_core_authenticatedsession (session_id, uuid, user_id) VALUES ($1, $2, $3)", next.Key, uuid.New(), u.ID),
	)
	if err != nil {
		return err
	}
	if err := firstError(
		s.event(d, r, "login", map[string]any{"auth_method": "password", "auth_method_args": map[string]any{}}, u),
		next.save(d, r),
		d.exec("UPDATE authentik_core_user SET last_login = now() WHERE id = $1", u.ID),
	); err != nil {
		return err
	}
	if s.cfg.FlushOnLogin {
		if err := s.cache.flush(d); err != nil {
			return err
		}
	}
	if err := s.reputation(d, r, u.Username, 1); err != nil {
		return err
	}
	next.State = planState{}
	if err := d.fill(1); err != nil {
		return err
	}
	if err := firstError(next.save(d, r), d.finish()); err != nil {
		return err
	}
	s.setCookies(w, r, next, true)
	writeJSON(w, http.StatusOK, map[string]any{"component": "xak-flow-redirect", "to": to})
	return nil
}

// reputation is one upsert.
func (s *Server) reputation(d *reqDB, r *http.Request, identifier string, by int) error {
	return d.exec(`INSERT INTO authentik_policies_reputation_reputation (reputation_uuid, identifier, ip, ip_geo_data, ip_asn_data, score, expires, expiring, updated)
VALUES ($1, $2, $3, '{}', '{}', $4, now() + interval '1 day', true, now())
ON CONFLICT (identifier, ip) DO UPDATE SET score = LEAST(GREATEST(authentik_policies_reputation_reputation.score + EXCLUDED.score, -5), 5), updated = now()`, uuid.New(), identifier, clientIP(r), by)
}

// event inserts an event in one commit, then enqueues its dispatch task in another.
func (s *Server) event(d *reqDB, r *http.Request, action string, context map[string]any, u *user) error {
	context["http_request"] = map[string]any{"path": r.URL.Path, "method": r.Method, "args": map[string]any{"query": r.URL.Query().Get("query")}, "user_agent": r.UserAgent(), "request_id": requestID(r)}
	ctx, _ := json.Marshal(context)
	who := []byte(`{}`)
	if u != nil {
		who, _ = json.Marshal(map[string]any{"pk": u.ID, "username": u.Username, "email": u.Email})
	}
	id := uuid.New()
	err := d.exec(`INSERT INTO authentik_events_event (event_uuid, "user", action, app, context, client_ip, created, expires, expiring, brand) VALUES ($1, $2::jsonb, $3, 'authentik.events.signals', $4::jsonb, $5, now(), now() + interval '365 days', true, '{"pk":"default","app":"authentik_brands","name":"Default brand","model_name":"brand"}')`,
		id, string(who), action, string(ctx), clientIP(r))
	if err != nil || !s.cfg.TasksInDB {
		return err
	}
	return d.inTx(func() error { return enqueue(d, actorDispatch, id.String()) })
}

// invalidate is the log-out flow: session and authenticated session go, an event is written. Not measured.
func (s *Server) invalidate(w http.ResponseWriter, r *http.Request) {
	d, err := s.cfg.open(r.Context(), s.less(budget{60, 27}))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	se, err := s.loadSession(d, r)
	if err == nil && s.cfg.ThrottleInCache && (se == nil || se.User == nil) {
		err = s.cache.throttle(d, clientIP(r))
	}
	if err == nil && se != nil {
		if se.User != nil {
			err = firstError(s.event(d, r, "logout", map[string]any{}, se.User),
				d.exec("DELETE FROM authentik_core_authenticatedsession WHERE session_id = $1", se.Key))
		}
		if err == nil {
			err = d.exec("DELETE FROM authentik_core_session WHERE session_key = $1", se.Key)
		}
	}
	if err == nil {
		err = d.finish()
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: sessionCookie, Path: "/", MaxAge: -1})
	writeJSON(w, http.StatusOK, map[string]any{"component": "xak-flow-redirect", "to": "/"})
}

func fieldError(text, code string) map[string]string {
	return map[string]string{"string": text, "code": code}
}

// avatar is the initials picture as a data URL: what the product makes itself when avatars are set to initials.
const avatar = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHdpZHRoPSI2NCIgaGVpZ2h0PSI2NCIvPg=="
