package authentik

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

type rowScanner = pgx.Rows

type newUser struct {
	Username string          `json:"username"`
	Name     string          `json:"name"`
	Email    string          `json:"email"`
	Path     string          `json:"path"`
	Type     string          `json:"type"`
	IsActive *bool           `json:"is_active"`
	Groups   []uuid.UUID     `json:"groups"`
	RawAttrs json.RawMessage `json:"attributes"`

	Active bool   `json:"-"`
	Attrs  string `json:"-"`
}

type queryer interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	QueryRow(context.Context, string, ...any) pgx.Row
}

// insertUser inserts a user with its group memberships; digest is the stored password.
func insertUser(ctx context.Context, tx queryer, u newUser, digest string) (int, error) {
	var id int
	err := tx.QueryRow(ctx, `INSERT INTO authentik_core_user (password, username, first_name, last_name, email, is_active, date_joined, uuid, name, path, type, attributes, last_updated, password_change_date) VALUES ($1, $2, '', '', $3, $4, now(), $5, $6, $7, $8, $9::jsonb, now(), now()) RETURNING id`,
		digest, u.Username, u.Email, u.Active, uuid.New(), u.Name, u.Path, u.Type, u.Attrs).Scan(&id)
	if err != nil {
		return 0, err
	}
	for _, g := range u.Groups {
		if _, err := tx.Exec(ctx, "INSERT INTO authentik_core_user_ak_groups (user_id, group_id) VALUES ($1, $2)", id, g); err != nil {
			return 0, err
		}
	}
	return id, nil
}

// users is GET and POST /core/users/.
func (s *Server) users(c *call) error {
	switch c.r.Method {
	case http.MethodGet:
		q := c.r.URL.Query()
		var out []any
		var u user
		var attrs string
		err := c.d.all(func(r rowScanner) error {
			if err := r.Scan(&u.ID, &u.Username, &u.Name, &u.Email, &u.UUID, &u.Active, &u.Super, &u.Path, &u.Type, &attrs); err != nil {
				return err
			}
			u.Attrs = json.RawMessage(attrs)
			out = append(out, u.json())
			return nil
		}, userColumns+"FROM authentik_core_user u WHERE ($1 = '' OR u.username = $1) AND ($2 = '' OR u.path = $2) AND ($3 = '' OR u.username LIKE '%' || $3 || '%') ORDER BY u.username LIMIT 1000", q.Get("username"), q.Get("path"), q.Get("search"))
		if err != nil {
			return err
		}
		writeJSON(c.w, http.StatusOK, s.page(out))
		return nil
	case http.MethodPost:
		return s.createUser(c)
	}
	methodNotAllowed(c.w, c.r)
	return nil
}

func (s *Server) createUser(c *call) error {
	in := newUser{Path: "users", Type: "internal", Active: true, Attrs: "{}"}
	if err := readBody(c.r, &in); err != nil {
		writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
		return nil
	}
	missing := map[string]any{}
	for field, v := range map[string]string{"username": in.Username, "name": in.Name} {
		if v == "" {
			missing[field] = []string{"This field is required."}
		}
	}
	if len(missing) > 0 {
		writeJSON(c.w, http.StatusBadRequest, missing)
		return nil
	}
	if in.IsActive != nil {
		in.Active = *in.IsActive
	}
	if len(in.RawAttrs) > 0 {
		in.Attrs = string(in.RawAttrs)
	}
	id, err := insertUser(c.d.ctx, c.d.conn, in, "!"+randomString(40, alnum))
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		switch pe.Code {
		case "23505":
			writeJSON(c.w, http.StatusBadRequest, map[string]any{"username": []string{"This field must be unique."}})
			return nil
		case "23503":
			writeJSON(c.w, http.StatusBadRequest, map[string]any{"groups": []string{"Invalid pk - object does not exist."}})
			return nil
		}
	}
	if err != nil {
		return err
	}
	if err := s.event(c.d, c.r, "model_created", map[string]any{"model": map[string]any{"pk": id, "app": "authentik_core", "model_name": "user"}}, c.user); err != nil {
		return err
	}
	u, err := scanUser(c.d, "FROM authentik_core_user u WHERE u.id = $1", id)
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusCreated, u.json())
	return nil
}

// pk reads the user's key from the path; 404 when there is no such user.
func (s *Server) pk(c *call) (*user, error) {
	id, err := strconv.Atoi(c.r.PathValue("pk"))
	if err != nil {
		id = 0
	}
	u, err := scanUser(c.d, "FROM authentik_core_user u WHERE u.id = $1", id)
	if err == nil && u == nil {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No User matches the given query."})
	}
	return u, err
}

// oneUser is GET, PATCH and DELETE /core/users/{pk}/.
func (s *Server) oneUser(c *call) error {
	u, err := s.pk(c)
	if err != nil || u == nil {
		return err
	}
	switch c.r.Method {
	case http.MethodGet:
	case http.MethodPatch:
		var in newUser
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		if in.IsActive != nil {
			u.Active = *in.IsActive
		}
		if in.Name != "" {
			u.Name = in.Name
		}
		if err := c.d.exec("UPDATE authentik_core_user SET is_active = $2, name = $3, last_updated = now() WHERE id = $1", u.ID, u.Active, u.Name); err != nil {
			return err
		}
	case http.MethodDelete:
		// Django collects what refers to the user and deletes all in one transaction.
		err := c.d.inTx(func() error {
			return firstError(
				c.d.exec("CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT session_id FROM authentik_core_authenticatedsession WHERE user_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_core_authenticatedsession WHERE user_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_core_session WHERE session_key IN (SELECT session_id FROM pg_temp.gone)"),
				c.d.exec("DELETE FROM authentik_core_token WHERE user_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_providers_oauth2_authorizationcode WHERE ref_01_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_providers_oauth2_accesstoken WHERE ref_01_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_core_user_ak_groups WHERE user_id = $1", u.ID),
				c.d.exec("DELETE FROM authentik_core_user WHERE id = $1", u.ID),
			)
		})
		if err != nil {
			return err
		}
		if err := s.event(c.d, c.r, "model_deleted", map[string]any{"model": map[string]any{"pk": u.ID, "app": "authentik_core", "model_name": "user"}}, c.user); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		methodNotAllowed(c.w, c.r)
		return nil
	}
	writeJSON(c.w, http.StatusOK, u.json())
	return nil
}

// setPassword is POST /core/users/{pk}/set_password/: it costs one full hash. The user's sessions end with it.
func (s *Server) setPassword(c *call) error {
	if c.r.Method != http.MethodPost {
		methodNotAllowed(c.w, c.r)
		return nil
	}
	u, err := s.pk(c)
	if err != nil || u == nil {
		return err
	}
	var in struct {
		Password string `json:"password"`
	}
	if err := readBody(c.r, &in); err != nil || in.Password == "" {
		writeJSON(c.w, http.StatusBadRequest, map[string]any{"password": []string{"This field is required."}})
		return nil
	}
	if err := c.d.exec("UPDATE authentik_core_user SET password = $2, password_change_date = now(), last_updated = now() WHERE id = $1", u.ID, s.cfg.MakePassword(in.Password)); err != nil {
		return err
	}
	if err := s.event(c.d, c.r, "password_set", map[string]any{}, c.user); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
