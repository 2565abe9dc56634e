package conformance

import (
	"fmt"
	"net/http"
	"time"
)

const oauthProviders = "/api/v3/providers/oauth2/"

// openIDConnect makes a client of authentik, goes through the code flow with it, and removes it.
func (s *suite) openIDConnect(admin *client, user, password string) error {
	name := fmt.Sprintf("conformance-oidc-%d", time.Now().UnixNano())
	p := &relyingParty{id: name, secret: nonsense() + nonsense(), redirect: "https://" + name + ".example.com/callback", host: "sso.example.com",
		issuer: "https://sso.example.com/application/o/" + name + "/", authorize: "/application/o/authorize/", token: "/application/o/token/",
		userinfo: "/application/o/userinfo/", jwks: "/application/o/" + name + "/jwks/"}
	body := map[string]any{"name": name, "client_type": "confidential", "client_id": p.id, "client_secret": p.secret,
		"redirect_uris": []map[string]string{{"matching_mode": "strict", "url": p.redirect}}}
	one := func(path string, field string) (any, error) {
		a, err := admin.do(http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		list := results(a)
		if !s.check("GET "+path, a.status == 200 && len(list) > 0, "status %d, %d results", a.status, len(list)) {
			return nil, nil
		}
		return list[0][field], nil
	}
	var err error
	for field, slug := range map[string]string{"authorization_flow": "default-provider-authorization-implicit-consent", "invalidation_flow": "default-provider-invalidation-flow"} {
		if body[field], err = one("/api/v3/flows/instances/?slug="+slug, "pk"); err != nil {
			return err
		}
	}
	if body["signing_key"], err = one("/api/v3/crypto/certificatekeypairs/?has_key=true&name=authentik+Self-signed+Certificate", "pk"); err != nil {
		return err
	}
	var mappings []any
	for _, scope := range []string{"openid", "profile", "email", "offline_access"} {
		pk, err := one("/api/v3/propertymappings/provider/scope/?scope_name="+scope, "pk")
		if err != nil {
			return err
		}
		mappings = append(mappings, pk)
	}
	body["property_mappings"] = mappings
	a, err := admin.do(http.MethodPost, oauthProviders, map[string]any{"name": name})
	if err != nil {
		return err
	}
	s.check("POST half an OAuth2 provider", a.status == 400, "status %d, want 400", a.status)
	if a, err = admin.do(http.MethodPost, oauthProviders, body); err != nil {
		return err
	}
	pk, _ := a.body["pk"].(float64)
	if !s.check("POST OAuth2 provider", a.status == 201 && pk > 0 && a.str("client_id") == p.id, "status %d", a.status) {
		return nil
	}
	provider := fmt.Sprintf("%s%.0f/", oauthProviders, pk)
	defer func() { // what a failed check left behind
		_, _ = admin.do(http.MethodDelete, applications+name+"/", nil)
		_, _ = admin.do(http.MethodDelete, provider, nil)
	}()
	if a.body["grant_types"] != nil { // from 2026.5
		if a, err = admin.do(http.MethodPatch, provider, map[string]any{"grant_types": []string{"authorization_code", "refresh_token"}}); err != nil {
			return err
		}
		s.check("PATCH the grant types", a.status == 200, "status %d", a.status)
	}
	if a, err = admin.do(http.MethodGet, oauthProviders+"?name="+name, nil); err != nil {
		return err
	}
	s.check("GET OAuth2 providers by name", a.status == 200 && len(results(a)) == 1, "status %d, %d results", a.status, len(results(a)))
	if a, err = admin.do(http.MethodPost, applications, map[string]any{"name": name, "slug": name, "provider": pk, "meta_launch_url": "blank://blank"}); err != nil {
		return err
	}
	s.check("POST its application", a.status == 201, "status %d, want 201", a.status)
	err = s.codeFlow(p, func() (*client, error) {
		c := s.client()
		return c, c.loginAuthentik(user, password)
	})
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name, path string
		want       int
	}{{"DELETE its application", applications + name + "/", 204}, {"DELETE OAuth2 provider", provider, 204}, {"DELETE OAuth2 provider again", provider, 404}} {
		if a, err = admin.do(http.MethodDelete, x.path, nil); err != nil {
			return err
		}
		s.check(x.name, a.status == x.want, "status %d, want %d", a.status, x.want)
	}
	return nil
}
