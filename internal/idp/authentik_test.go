package idp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"authstack.dev/authstack/internal/idp"
)

const token = "canary-token-0123456789"

// users is as much of authentik's users API as is used.
type users struct {
	names     map[string]int64
	passwords map[string]string
	next      int64
}

func (u *users) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/api/v3/core/users/":
		results := []map[string]any{}
		if pk, ok := u.names[r.URL.Query().Get("username")]; ok {
			results = append(results, map[string]any{"pk": pk, "username": r.URL.Query().Get("username")})
		}
		if r.URL.Query().Get("path") == idp.UserPath {
			for name, pk := range u.names {
				results = append(results, map[string]any{"pk": pk, "username": name})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	case r.Method == http.MethodPost && r.URL.Path == "/api/v3/core/users/":
		var user struct{ Username, Name, Path, Type string }
		_ = json.NewDecoder(r.Body).Decode(&user)
		u.next++
		u.names[user.Username] = u.next
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"pk": u.next})
	case strings.HasSuffix(r.URL.Path, "/set_password/"):
		var body struct{ Password string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		u.passwords[r.URL.Path] = body.Password
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		for name, pk := range u.names {
			if r.URL.Path == fmt.Sprintf("/api/v3/core/users/%d/", pk) {
				delete(u.names, name)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestAuthentikUsers(t *testing.T) {
	g := NewWithT(t)
	held := &users{names: map[string]int64{}, passwords: map[string]string{}}
	server := httptest.NewServer(held)
	defer server.Close()
	api := &idp.Authentik{BaseURL: server.URL, Token: token}
	ctx := context.Background()

	t.Run("a user that is asked for twice is made once", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(api.EnsureUser(ctx, "authstack-latency-a", "first")).To(Succeed())
		g.Expect(api.EnsureUser(ctx, "authstack-latency-a", "second")).To(Succeed())
		g.Expect(held.names).To(HaveLen(1))
		g.Expect(held.passwords).To(HaveKeyWithValue("/api/v3/core/users/1/set_password/", "second"))
	})
	t.Run("a user that is gone can be removed again", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(api.EnsureUser(ctx, "authstack-latency-b", "third")).To(Succeed())
		g.Expect(api.RemoveUsers(ctx, "authstack-latency-a")).To(Succeed())
		g.Expect(held.names).To(HaveLen(1))
		g.Expect(api.RemoveUsers(ctx, "authstack-latency-")).To(Succeed())
		g.Expect(api.RemoveUsers(ctx, "authstack-latency-a")).To(Succeed())
		g.Expect(held.names).To(BeEmpty())
	})
	t.Run("a refusal says what was asked and not with which token", func(t *testing.T) {
		g := NewWithT(t)
		wrong := &idp.Authentik{BaseURL: server.URL, Token: token + "x"}
		err := wrong.EnsureUser(ctx, "authstack-latency-a", "canary-password")
		g.Expect(err).To(MatchError(HavePrefix("authentik's admin API answered 403 Forbidden to GET /api/v3/core/users/; authentik takes the token only when it first starts on an empty database")))
	})
	server.Close()
	err := api.EnsureUser(ctx, "authstack-latency-a", "canary-password")
	g.Expect(err).To(HaveOccurred())
	g.Expect(err.Error()).NotTo(ContainSubstring("canary"))
}
