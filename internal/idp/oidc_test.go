package idp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"authstack.dev/authstack/internal/idp"
)

// openID is as much of authentik as an OpenID Connect client takes.
type openID struct {
	provider, application map[string]any
	// scopes and keys are what lists of them answer.
	scopes map[string][]map[string]any
	keys   []map[string]any
	writes []string
	// grants are the grant types of a new provider; before 2026.5 there are none to choose.
	grants []any
}

func newOpenID() *openID {
	held := &openID{scopes: map[string][]map[string]any{}, keys: []map[string]any{{"pk": "k-1", "name": "a company's"}, {"pk": "k-2", "name": "authentik Self-signed Certificate"}}}
	for _, name := range []string{"openid", "profile", "email", "offline_access"} {
		held.scopes[name] = []map[string]any{{"pk": "own-" + name, "managed": nil}, {"pk": "s-" + name, "managed": "goauthentik.io/providers/oauth2/scope-" + name}}
	}
	return held
}

func (o *openID) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := map[string]any{}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&body)
		o.writes = append(o.writes, r.Method+" "+r.URL.Path)
	}
	list := func(items ...map[string]any) { _ = json.NewEncoder(w).Encode(map[string]any{"results": items}) }
	held := &o.application
	if strings.HasPrefix(r.URL.Path, "/api/v3/providers/") {
		held = &o.provider
	}
	switch q := r.URL.Query(); {
	case r.URL.Path == "/api/v3/core/applications/probe/" && o.application != nil && r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(map[string]any{"provider": 42})
	case r.URL.Path == "/api/v3/flows/instances/":
		list(map[string]any{"pk": "flow-of-" + q.Get("slug"), "slug": q.Get("slug")})
	case r.URL.Path == "/api/v3/propertymappings/provider/scope/":
		list(o.scopes[q.Get("scope_name")]...)
	case r.URL.Path == "/api/v3/crypto/certificatekeypairs/" && q.Get("has_key") == "true":
		list(o.keys...)
	case r.URL.Path == "/api/v3/providers/oauth2/" && r.Method == http.MethodGet:
		// A filter that an authentik did not know would be overlooked.
		others := []map[string]any{{"pk": 7, "name": "another"}}
		if o.provider != nil {
			others = append(others, o.provider)
		}
		list(others...)
	case r.Method == http.MethodPost:
		body["pk"] = 42
		if o.grants != nil && held == &o.provider {
			body["grant_types"] = o.grants
		}
		*held = body
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(body)
	case *held == nil || r.URL.Path != "/api/v3/providers/oauth2/42/" && r.URL.Path != "/api/v3/core/applications/probe/":
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		*held = nil
		w.WriteHeader(http.StatusNoContent)
	default:
		for key, value := range body {
			(*held)[key] = value
		}
		_ = json.NewEncoder(w).Encode(*held)
	}
}

func TestOIDC(t *testing.T) {
	ctx := context.Background()
	const secret = "canary-client-secret"
	app := idp.OIDC{Name: "probe", ClientID: "probe", ClientSecret: secret, RedirectURI: "https://probe.example.com/callback"}
	start := func(t *testing.T, held *openID) (*GomegaWithT, *idp.Authentik) {
		server := httptest.NewServer(held)
		t.Cleanup(server.Close)
		return NewWithT(t), &idp.Authentik{BaseURL: server.URL, Token: token}
	}
	t.Run("provider and application", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		g.Expect(held.writes).To(Equal([]string{"POST /api/v3/providers/oauth2/", "POST /api/v3/core/applications/"}))
		g.Expect(held.provider).To(And(
			HaveKeyWithValue("client_type", "confidential"), HaveKeyWithValue("client_id", "probe"), HaveKeyWithValue("client_secret", secret),
			HaveKeyWithValue("redirect_uris", []any{map[string]any{"matching_mode": "strict", "url": "https://probe.example.com/callback"}}),
			HaveKeyWithValue("property_mappings", []any{"s-openid", "s-profile", "s-email", "s-offline_access"}),
			HaveKeyWithValue("signing_key", "k-2"), Not(HaveKey("grant_types")),
			HaveKeyWithValue("authorization_flow", "flow-of-default-provider-authorization-implicit-consent"),
			HaveKeyWithValue("invalidation_flow", "flow-of-default-provider-invalidation-flow")))
		g.Expect(held.application).To(And(HaveKeyWithValue("slug", "probe"), HaveKeyWithValue("provider", 42.0)))
	})
	t.Run("from 2026.5 it may ask for a code and for refreshed tokens", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		held.grants = []any{"authorization_code", "implicit"}
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		g.Expect(held.provider).To(HaveKeyWithValue("grant_types", []any{"authorization_code", "refresh_token"}))
		held.writes = nil
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		g.Expect(held.writes).To(Equal([]string{"PATCH /api/v3/providers/oauth2/42/"}), "what is right stays")
	})
	t.Run("a client that is there takes the secret of this run", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		held.provider = map[string]any{"pk": 42, "name": "probe", "client_secret": "old"}
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		g.Expect(held.writes).To(Equal([]string{"PATCH /api/v3/providers/oauth2/42/", "POST /api/v3/core/applications/"}))
		g.Expect(held.provider).To(HaveKeyWithValue("client_secret", secret))
	})
	t.Run("without authentik's own key pair another one signs", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		held.keys = held.keys[:1]
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		g.Expect(held.provider).To(HaveKeyWithValue("signing_key", "k-1"))
	})
	t.Run("what is missing is said, and nothing is made", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		held.keys = nil
		g.Expect(api.EnsureOIDC(ctx, app)).To(MatchError(ContainSubstring("generate one under System, Certificates")))
		held.scopes["offline_access"] = held.scopes["offline_access"][:1]
		g.Expect(api.EnsureOIDC(ctx, app)).To(MatchError(ContainSubstring("no mapping of the scope offline_access")))
		g.Expect(held.writes).To(BeEmpty())
	})
	t.Run("an answer that says no holds no secret", func(t *testing.T) {
		g := NewWithT(t)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				http.Error(w, secret, http.StatusBadRequest)
				return
			}
			newOpenID().ServeHTTP(w, r)
		}))
		defer server.Close()
		err := (&idp.Authentik{BaseURL: server.URL, Token: token}).EnsureOIDC(ctx, app)
		g.Expect(err).To(MatchError(ContainSubstring("answered 400 Bad Request to POST /api/v3/providers/oauth2/")))
		g.Expect(err.Error()).NotTo(Or(ContainSubstring(secret), ContainSubstring(token)))
	})
	t.Run("everything goes, twice", func(t *testing.T) {
		held := newOpenID()
		g, api := start(t, held)
		g.Expect(api.EnsureOIDC(ctx, app)).To(Succeed())
		for range 2 {
			g.Expect(api.RemoveOIDC(ctx, "probe")).To(Succeed())
			g.Expect(held.provider).To(BeNil())
			g.Expect(held.application).To(BeNil())
		}
		g.Expect(held.writes).NotTo(ContainElement(ContainSubstring("/7/")), "others stay")
	})
}
