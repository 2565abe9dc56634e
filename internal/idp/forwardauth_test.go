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

// applications is as much of authentik as forward auth takes: flows, one provider, one application and
// the outpost, of which known is what it answers for.
type applications struct {
	provider    map[string]any
	application map[string]any
	outpost     map[string]any
	knows       bool
	noFlows     bool
	writes      []string
}

func newApplications() *applications {
	return &applications{knows: true, outpost: map[string]any{"pk": "o-1", "managed": "goauthentik.io/outposts/embedded", "providers": []any{7.0}, "config": map[string]any{"log_level": "info", "authentik_host": ""}}}
}

func (a *applications) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/outpost.goauthentik.io/auth/traefik" {
		client := "another"
		if a.knows && a.provider != nil && "https://"+r.Host == a.provider["external_host"] {
			client = a.provider["client_id"].(string)
		}
		http.Redirect(w, r, "https://sso.example.com/application/o/authorize/?client_id="+client, http.StatusFound)
		return
	}
	body := map[string]any{}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&body)
		a.writes = append(a.writes, r.Method+" "+r.URL.Path)
	}
	list := func(items ...map[string]any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"results": items})
	}
	// one is a single object: read, changed or deleted.
	one := func(held *map[string]any) {
		switch {
		case *held == nil:
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodDelete:
			*held = nil
			w.WriteHeader(http.StatusNoContent)
			return
		}
		for key, value := range body {
			(*held)[key] = value
		}
		_ = json.NewEncoder(w).Encode(*held)
	}
	make := func(held *map[string]any, more map[string]any) {
		*held = body
		for key, value := range more {
			(*held)[key] = value
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(*held)
	}
	slug := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/api/v3/core/applications/"), "/")
	switch {
	case r.URL.Path == "/api/v3/flows/instances/":
		if a.noFlows {
			list()
			return
		}
		list(map[string]any{"pk": "flow-of-" + r.URL.Query().Get("slug"), "slug": r.URL.Query().Get("slug")})
	case r.URL.Path == "/api/v3/providers/proxy/" && r.Method == http.MethodPost:
		make(&a.provider, map[string]any{"pk": 42.0, "client_id": "client-42"})
	case r.URL.Path == "/api/v3/providers/proxy/":
		if a.provider != nil && a.provider["name"] == r.URL.Query().Get("name__iexact") {
			list(a.provider)
			return
		}
		list()
	case r.URL.Path == "/api/v3/providers/proxy/42/":
		one(&a.provider)
	case r.URL.Path == "/api/v3/core/applications/":
		make(&a.application, nil)
	case a.application != nil && a.application["slug"] == slug:
		one(&a.application)
	case r.URL.Path == "/api/v3/outposts/instances/" && a.outpost != nil:
		list(a.outpost)
	case r.URL.Path == "/api/v3/outposts/instances/":
		list()
	case r.URL.Path == "/api/v3/outposts/instances/o-1/":
		one(&a.outpost)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestForwardAuth(t *testing.T) {
	ctx := context.Background()
	app := idp.ForwardAuth{Name: "probe", Host: "probe.example.com", Portal: "https://sso.example.com"}
	start := func(t *testing.T, held *applications) (*GomegaWithT, *idp.Authentik) {
		server := httptest.NewServer(held)
		t.Cleanup(server.Close)
		return NewWithT(t), &idp.Authentik{BaseURL: server.URL, Token: token}
	}
	t.Run("provider, application and outpost, once", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
		writes := []string{"POST /api/v3/providers/proxy/", "POST /api/v3/core/applications/", "PATCH /api/v3/outposts/instances/o-1/"}
		g.Expect(held.writes).To(Equal(writes))
		g.Expect(held.provider).To(And(HaveKeyWithValue("mode", "forward_single"), HaveKeyWithValue("external_host", "https://probe.example.com"),
			HaveKeyWithValue("authorization_flow", "flow-of-default-provider-authorization-implicit-consent"),
			HaveKeyWithValue("invalidation_flow", "flow-of-default-provider-invalidation-flow")))
		g.Expect(held.application).To(And(HaveKeyWithValue("slug", "probe"), HaveKeyWithValue("provider", 42.0)))
		g.Expect(held.outpost["providers"]).To(Equal([]any{7.0, 42.0}), "the others stay")
		g.Expect(held.outpost["config"]).To(And(HaveKeyWithValue("log_level", "info"), HaveKeyWithValue("authentik_host", "https://sso.example.com")))
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
		g.Expect(held.writes).To(Equal(writes), "a second time writes nothing")
	})
	t.Run("what an operator that died left unfinished is finished", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		held.provider = map[string]any{"pk": 42.0, "name": "probe", "mode": "forward_single", "external_host": "https://probe.old.example.com", "client_id": "client-42"}
		held.application = map[string]any{"slug": "probe", "provider": nil}
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
		g.Expect(held.writes).To(Equal([]string{"PATCH /api/v3/providers/proxy/42/", "PATCH /api/v3/core/applications/probe/", "PATCH /api/v3/outposts/instances/o-1/"}))
		g.Expect(held.provider).To(HaveKeyWithValue("external_host", "https://probe.example.com"))
	})
	t.Run("an outpost that knows its portal is not told another", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		held.outpost["config"] = map[string]any{"authentik_host": "https://login.example.com/"}
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
		g.Expect(held.outpost["config"]).To(HaveKeyWithValue("authentik_host", "https://login.example.com/"))
	})
	t.Run("an outpost that answers for another application does not answer yet", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		held.knows = false
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(MatchError(idp.ErrNotAnswering))
		held.knows = true
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
	})
	t.Run("everything goes, twice", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(Succeed())
		held.writes = nil
		g.Expect(api.RemoveForwardAuth(ctx, "probe")).To(Succeed())
		g.Expect(held.provider).To(BeNil())
		g.Expect(held.application).To(BeNil())
		g.Expect(held.outpost["providers"]).To(Equal([]any{7.0}))
		g.Expect(held.writes[0]).To(Equal("PATCH /api/v3/outposts/instances/o-1/"), "the outpost lets go first")
		g.Expect(api.RemoveForwardAuth(ctx, "probe")).To(Succeed())
	})
	t.Run("without the default flows or the embedded outpost the refusal says so", func(t *testing.T) {
		held := newApplications()
		g, api := start(t, held)
		held.noFlows = true
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(MatchError(ContainSubstring("default blueprints")))
		held.noFlows, held.outpost = false, nil
		g.Expect(api.EnsureForwardAuth(ctx, app)).To(MatchError(ContainSubstring("DISABLE_EMBEDDED_OUTPOST")))
		g.Expect(api.RemoveForwardAuth(ctx, "probe")).To(Succeed(), fmt.Sprint(held.writes))
		g.Expect(held.provider).To(BeNil())
	})
}
