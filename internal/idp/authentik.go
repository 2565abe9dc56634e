// Package idp is the thin edge to the admin API of an identity provider: it makes and removes the user
// that a latency test logs in with, and the application that it asks forward auth for. It decides nothing.
package idp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// UserPath is where test users lie in authentik's tree of users.
const UserPath = "authstack/latency"

// Authentik is the admin API of one authentik.
type Authentik struct {
	// BaseURL inside the cluster, for example http://sso-authentik.auth.svc:9000.
	BaseURL string
	// Token of an administrator; it never appears in an error.
	Token string
	// HTTP sends the requests. Default: a client with a timeout of 15 s.
	HTTP *http.Client
}

// EnsureUser makes a user with this name and password, or gives the password to the one there is.
func (a *Authentik) EnsureUser(ctx context.Context, username, password string) error {
	pk, found, err := a.find(ctx, username)
	if err != nil {
		return err
	}
	if !found {
		var made struct {
			PK int64 `json:"pk"`
		}
		user := map[string]any{"username": username, "name": username, "path": UserPath, "type": "internal", "is_active": true}
		if err := a.call(ctx, http.MethodPost, "/api/v3/core/users/", user, &made); err != nil {
			return err
		}
		pk = made.PK
	}
	return a.call(ctx, http.MethodPost, userURL(pk)+"set_password/", map[string]any{"password": password}, nil)
}

// RemoveUsers removes the test users whose names start with the prefix.
func (a *Authentik) RemoveUsers(ctx context.Context, prefix string) error {
	const pages = 50
	for range pages {
		var list userList
		if err := a.call(ctx, http.MethodGet, "/api/v3/core/users/?page_size=100&path="+url.QueryEscape(UserPath), nil, &list); err != nil {
			return err
		}
		removed := false
		for _, user := range list.Results {
			if !strings.HasPrefix(user.Username, prefix) {
				continue
			}
			if err := ignoreNotFound(a.call(ctx, http.MethodDelete, userURL(user.PK), nil, nil)); err != nil {
				return err
			}
			removed = true
		}
		if !removed {
			return nil
		}
	}
	return errors.New("authentik's admin API lists users that were removed")
}

type userList struct {
	Results []struct {
		PK       int64  `json:"pk"`
		Username string `json:"username"`
	} `json:"results"`
}

func (a *Authentik) find(ctx context.Context, username string) (pk int64, found bool, err error) {
	var list userList
	if err := a.call(ctx, http.MethodGet, "/api/v3/core/users/?username="+url.QueryEscape(username), nil, &list); err != nil {
		return 0, false, err
	}
	for _, user := range list.Results {
		if user.Username == username {
			return user.PK, true, nil
		}
	}
	return 0, false, nil
}

func userURL(pk int64) string { return "/api/v3/core/users/" + strconv.FormatInt(pk, 10) + "/" }

// StatusError is an answer that says no. It holds nothing of what was sent.
type StatusError struct {
	Method, Path string
	Code         int
}

func (e *StatusError) Error() string {
	said := fmt.Sprintf("authentik's admin API answered %d %s to %s %s", e.Code, http.StatusText(e.Code), e.Method, e.Path)
	if e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden {
		// The bootstrap skips a database that is set up (authentik/core/setup/signals.py from 2026.5; before, the
		// blueprint system/bootstrap.yaml makes the token only where there is none).
		said += "; authentik takes the token only when it first starts on an empty database, so where the database had another authentik before, " +
			"write an API token of one of its administrators into the Secret"
	}
	return said
}

const answerLimit = 1 << 20

func (a *Authentik) call(ctx context.Context, method, path string, send, receive any) error {
	var body io.Reader
	if send != nil {
		data, err := json.Marshal(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.BaseURL+path, body)
	if err != nil {
		return errors.New("authentik's address is no URL")
	}
	request.Header.Set("Authorization", "Bearer "+a.Token)
	request.Header.Set("Accept", "application/json")
	if send != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := a.client().Do(request)
	if err != nil {
		return fmt.Errorf("authentik's admin API does not answer: %w", reason(err))
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("authentik's admin API broke off its answer: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		where, _, _ := bytes.Cut([]byte(path), []byte("?"))
		return &StatusError{Method: method, Path: string(where), Code: response.StatusCode}
	}
	if receive == nil {
		return nil
	}
	if err := json.Unmarshal(answer, receive); err != nil {
		return errors.New("authentik's admin API answered something that is not its JSON")
	}
	return nil
}

// reason is why a request failed, without its URL.
func reason(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func (a *Authentik) client() *http.Client {
	if a.HTTP != nil {
		return a.HTTP
	}
	return &http.Client{Timeout: 15 * time.Second}
}
