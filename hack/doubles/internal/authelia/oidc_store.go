package authelia

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// grant is what is kept of an authorization: behind a consent, a code, an access token or a refresh token.
type grant struct {
	Request     string // the same over all that follows from one authorization
	Client      string
	Subject     string
	Username    string
	DisplayName string
	Email       string
	Scope       string
	Redirect    string
	Nonce       string
	Challenge   string
	Query       string
	AuthTime    int64
	Expires     int64
	Consented   bool
}

// The kinds of rows, each a table oauth2_…_session.
const (
	kindConsent = "consent"
	kindCode    = "authorization_code"
	kindPKCE    = "pkce_request"
	kindOpenID  = "openid_connect"
	kindAccess  = "access_token"
	kindRefresh = "refresh_token"
)

var oidcTables = func() (out []string) {
	out = append(out, `CREATE TABLE IF NOT EXISTS oauth2_consent_session (id SERIAL PRIMARY KEY, signature VARCHAR(255) UNIQUE NOT NULL, request_id VARCHAR(40) NOT NULL, active BOOLEAN NOT NULL DEFAULT TRUE, granted BOOLEAN NOT NULL DEFAULT FALSE, session_data BYTEA NOT NULL)`)
	for _, kind := range []string{kindCode, kindPKCE, kindOpenID, kindAccess, kindRefresh} {
		out = append(out, `CREATE TABLE IF NOT EXISTS oauth2_`+kind+`_session (id SERIAL PRIMARY KEY, signature VARCHAR(255) UNIQUE NOT NULL, request_id VARCHAR(40) NOT NULL, active BOOLEAN NOT NULL DEFAULT TRUE, session_data BYTEA NOT NULL)`,
			`CREATE INDEX IF NOT EXISTS oauth2_`+kind+`_session_request_id_idx ON oauth2_`+kind+`_session (request_id)`)
	}
	return out
}()

// grants is the store of OpenID Connect: PostgreSQL, or memory for storage.local.
type grants interface {
	// subject is the opaque identifier of a user, made at first sight, and username is the way back.
	subject(ctx context.Context, username string) (string, error)
	username(ctx context.Context, subject string) (string, error)
	insert(ctx context.Context, kind, signature string, g *grant) error
	// find is nil for what is not there or was ended.
	find(ctx context.Context, kind, signature string) (*grant, error)
	update(ctx context.Context, kind, signature string, g *grant) error
	granted(ctx context.Context, signature string) error
	end(ctx context.Context, kind, signature string) error
	endAll(ctx context.Context, kind, request string) error
	// inTx does all of it in one commit.
	inTx(ctx context.Context, f func(grants) error) error
}

type queryer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

type sqlGrants struct {
	db *sql.DB
	q  queryer
}

func (s *sqlGrants) subject(ctx context.Context, username string) (id string, err error) {
	err = s.q.QueryRowContext(ctx, `SELECT identifier FROM user_opaque_identifier WHERE service = 'openid' AND sector_id = '' AND username = $1`, username).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		id = uuid.NewString()
		_, err = s.q.ExecContext(ctx, `INSERT INTO user_opaque_identifier (service, sector_id, username, identifier) VALUES ('openid', '', $1, $2)`, username, id)
	}
	return id, err
}

func (s *sqlGrants) username(ctx context.Context, subject string) (name string, err error) {
	return name, s.q.QueryRowContext(ctx, `SELECT username FROM user_opaque_identifier WHERE identifier = $1`, subject).Scan(&name)
}

func (s *sqlGrants) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.q.ExecContext(ctx, query, args...)
	return err
}

func (s *sqlGrants) insert(ctx context.Context, kind, signature string, g *grant) error {
	data, _ := json.Marshal(g)
	return s.exec(ctx, `INSERT INTO oauth2_`+kind+`_session (signature, request_id, session_data) VALUES ($1, $2, $3)`, signature, g.Request, data)
}

func (s *sqlGrants) find(ctx context.Context, kind, signature string) (*grant, error) {
	var data []byte
	err := s.q.QueryRowContext(ctx, `SELECT session_data FROM oauth2_`+kind+`_session WHERE signature = $1 AND active`, signature).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	g := &grant{}
	if err == nil {
		err = json.Unmarshal(data, g)
	}
	return g, err
}

func (s *sqlGrants) update(ctx context.Context, kind, signature string, g *grant) error {
	data, _ := json.Marshal(g)
	return s.exec(ctx, `UPDATE oauth2_`+kind+`_session SET session_data = $2 WHERE signature = $1`, signature, data)
}

func (s *sqlGrants) granted(ctx context.Context, signature string) error {
	return s.exec(ctx, `UPDATE oauth2_consent_session SET granted = TRUE, active = FALSE WHERE signature = $1`, signature)
}

func (s *sqlGrants) end(ctx context.Context, kind, signature string) error {
	return s.exec(ctx, `UPDATE oauth2_`+kind+`_session SET active = FALSE WHERE signature = $1`, signature)
}

func (s *sqlGrants) endAll(ctx context.Context, kind, request string) error {
	return s.exec(ctx, `UPDATE oauth2_`+kind+`_session SET active = FALSE WHERE request_id = $1`, request)
}

func (s *sqlGrants) inTx(ctx context.Context, f func(grants) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if err := f(&sqlGrants{s.db, tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// localGrants are in memory.
type localGrants struct {
	mu       sync.Mutex
	subjects map[string]string
	rows     map[string]grant
}

func newLocalGrants() *localGrants {
	return &localGrants{subjects: map[string]string{}, rows: map[string]grant{}}
}

func (l *localGrants) subject(_ context.Context, username string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.subjects[username] == "" {
		l.subjects[username] = uuid.NewString()
	}
	return l.subjects[username], nil
}

func (l *localGrants) username(_ context.Context, subject string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, id := range l.subjects {
		if id == subject {
			return name, nil
		}
	}
	return "", sql.ErrNoRows
}

func (l *localGrants) insert(ctx context.Context, kind, signature string, g *grant) error {
	return l.update(ctx, kind, signature, g)
}

func (l *localGrants) update(_ context.Context, kind, signature string, g *grant) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows[kind+"/"+signature] = *g
	return nil
}

func (l *localGrants) find(_ context.Context, kind, signature string) (*grant, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.rows[kind+"/"+signature]; ok {
		return &g, nil
	}
	return nil, nil
}

func (l *localGrants) granted(ctx context.Context, signature string) error {
	return l.end(ctx, kindConsent, signature)
}

func (l *localGrants) end(_ context.Context, kind, signature string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.rows, kind+"/"+signature)
	return nil
}

func (l *localGrants) endAll(_ context.Context, kind, request string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, g := range l.rows {
		if g.Request == request && len(key) > len(kind) && key[:len(kind)+1] == kind+"/" {
			delete(l.rows, key)
		}
	}
	return nil
}

func (l *localGrants) inTx(_ context.Context, f func(grants) error) error { return f(l) }
