package authentik

import (
	"net/http"
	"strings"
)

// workerHandler: the worker answers for its health only.
func (s *Server) workerHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/-/health/live/{$}", s.live)
	mux.HandleFunc("/-/health/ready/{$}", s.ready)
	return mux
}

// serverHandler is the part of the API that stacks and load tests use. A missing trailing slash is redirected, as
// Django's APPEND_SLASH does it for GET.
func (s *Server) serverHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/-/health/live/{$}", s.live)
	mux.HandleFunc("/-/health/ready/{$}", s.ready)
	mux.HandleFunc("/-/metrics/{$}", s.metrics)
	const api = "/api/v3/"
	mux.HandleFunc(api+"flows/executor/{slug}/{$}", s.executor)
	mux.HandleFunc(api+"root/config/{$}", s.api(anonymous, budget{15, 7}, s.rootConfig))
	mux.HandleFunc(api+"core/brands/current/{$}", s.api(anonymous, budget{27, 13}, s.brandCurrent))
	mux.HandleFunc(api+"core/applications/{$}", s.applications)
	mux.HandleFunc(api+"core/users/me/{$}", s.me)
	mux.HandleFunc(api+"core/users/{$}", s.api(admin, budget{40, 18}, s.users))
	mux.HandleFunc(api+"core/users/{pk}/{$}", s.api(admin, budget{40, 18}, s.oneUser))
	mux.HandleFunc(api+"core/users/{pk}/set_password/{$}", s.api(admin, budget{40, 18}, s.setPassword))
	mux.HandleFunc(api+"core/groups/{$}", s.api(admin, budget{35, 16}, s.groups))
	mux.HandleFunc(api+"core/tokens/{$}", s.api(admin, budget{35, 16}, s.tokens))
	mux.HandleFunc(api+"admin/settings/{$}", s.api(admin, budget{35, 16}, s.settings))
	mux.HandleFunc(api+"admin/version/{$}", s.api(loggedIn, budget{25, 11}, s.version))
	mux.HandleFunc(api+"managed/blueprints/{$}", s.api(admin, budget{35, 16}, s.blueprints))
	mux.HandleFunc(api+"core/applications/{slug}/{$}", s.api(admin, budget{50, 23}, s.oneApplication))
	mux.HandleFunc(api+"flows/instances/{$}", s.api(admin, budget{35, 16}, s.flows))
	mux.HandleFunc(api+"providers/proxy/{$}", s.api(admin, budget{50, 23}, s.proxyProviders))
	mux.HandleFunc(api+"providers/proxy/{pk}/{$}", s.api(admin, budget{50, 23}, s.oneProxyProvider))
	mux.HandleFunc(api+"outposts/instances/{$}", s.api(admin, budget{50, 23}, s.outposts))
	mux.HandleFunc(api+"outposts/instances/{pk}/{$}", s.api(admin, budget{50, 23}, s.oneOutpost))
	mux.HandleFunc(api+"providers/oauth2/{$}", s.api(admin, budget{50, 23}, s.oauthProviders))
	mux.HandleFunc(api+"providers/oauth2/{pk}/{$}", s.api(admin, budget{50, 23}, s.oneOAuthProvider))
	mux.HandleFunc(api+"propertymappings/provider/scope/{$}", s.api(admin, budget{35, 16}, s.scopeMappings))
	mux.HandleFunc(api+"crypto/certificatekeypairs/{$}", s.api(admin, budget{35, 16}, s.keyPairs))
	mux.HandleFunc("/application/o/authorize/{$}", s.authorize)
	mux.HandleFunc("POST /application/o/token/{$}", s.oidcToken)
	mux.HandleFunc("/application/o/userinfo/{$}", s.oidcUserinfo)
	mux.HandleFunc("GET /application/o/{slug}/jwks/{$}", s.oidcJWKS)
	mux.HandleFunc("GET /application/o/{slug}/.well-known/openid-configuration", s.oidcDiscovery)
	for _, proxy := range []string{"nginx", "traefik", "caddy", "envoy"} {
		mux.HandleFunc("/outpost.goauthentik.io/auth/"+proxy, s.outpostCheck(proxy))
	}
	mux.HandleFunc("/outpost.goauthentik.io/auth/envoy/{rest...}", s.outpostCheck("envoy"))
	mux.HandleFunc("/outpost.goauthentik.io/start", s.outpostStart)
	mux.HandleFunc("/outpost.goauthentik.io/callback", s.outpostCallback)
	mux.HandleFunc("/outpost.goauthentik.io/ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/if/flow/{slug}/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>authentik</title><ak-flow-executor></ak-flow-executor>\n"))
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/if/flow/"+loginFlow+"/?next=%2F", http.StatusFound)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/") && strings.HasPrefix(r.URL.Path, api) {
			u := *r.URL
			u.Path += "/"
			http.Redirect(w, r, u.RequestURI(), http.StatusMovedPermanently)
			return
		}
		writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not found."})
	})
	return mux
}
