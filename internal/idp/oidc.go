package idp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// What the admin API of authentik 2025.2 to 2026.8 calls things (authentik/providers/oauth2/api,
// authentik/crypto/api.py, blueprints/system/providers-oauth2.yaml).
const (
	oauthProvidersPath = "/api/v3/providers/oauth2/"
	scopesPath         = "/api/v3/propertymappings/provider/scope/"
	keyPairsPath       = "/api/v3/crypto/certificatekeypairs/"

	managedScopes = "goauthentik.io/providers/oauth2/scope-"
	// selfSigned is the key pair that authentik makes at its first start, and that its own interface proposes.
	selfSigned = "authentik Self-signed Certificate"
)

// oidcScopes are those of the client. offline_access gives refresh tokens.
var oidcScopes = []string{"openid", "profile", "email", "offline_access"}

// refreshValidity of the client's refresh tokens: longer than any run, and short, since they are kept in the
// table of tokens until then where a client could not be removed. authentik's default is 30 days.
const refreshValidity = "hours=4"

// OIDC is an application with a provider of OpenID Connect.
type OIDC struct {
	// Name of the provider and the application, and the application's slug.
	Name string
	// ClientID and ClientSecret that the client shows.
	ClientID, ClientSecret string
	// RedirectURI that the browser is sent back to, compared letter by letter.
	RedirectURI string
}

// EnsureOIDC makes the application and its provider, unless they are there, and has the provider take this
// client's ID, secret and redirect URI.
func (a *Authentik) EnsureOIDC(ctx context.Context, app OIDC) error {
	found, there, err := a.findOIDC(ctx, app.Name)
	if err != nil {
		return err
	}
	body := map[string]any{
		"name": app.Name, "client_type": "confidential", "client_id": app.ClientID, "client_secret": app.ClientSecret,
		"redirect_uris":          []map[string]string{{"matching_mode": "strict", "url": app.RedirectURI}},
		"refresh_token_validity": refreshValidity,
	}
	method, path := http.MethodPatch, oauthProviderURL(found)
	if !there {
		method, path = http.MethodPost, oauthProvidersPath
		if err := a.oidcParts(ctx, body); err != nil {
			return err
		}
	}
	var made struct {
		PK int64 `json:"pk"`
		// GrantTypes are what the client may ask for: from 2026.5 a list, before whatever there is.
		GrantTypes []string `json:"grant_types"`
	}
	if err := a.call(ctx, method, path, body, &made); err != nil {
		return err
	}
	if made.GrantTypes != nil && (!slices.Contains(made.GrantTypes, "authorization_code") || !slices.Contains(made.GrantTypes, "refresh_token")) {
		granted := map[string]any{"grant_types": []string{"authorization_code", "refresh_token"}}
		if err := a.call(ctx, http.MethodPatch, oauthProviderURL(made.PK), granted, nil); err != nil {
			return err
		}
	}
	return a.ensureApplication(ctx, app.Name, made.PK)
}

// oidcParts are the keys of what a provider is put together from.
func (a *Authentik) oidcParts(ctx context.Context, body map[string]any) (err error) {
	for field, slug := range map[string]string{"authorization_flow": authorizeFlow, "invalidation_flow": invalidationFlow} {
		if body[field], err = a.flow(ctx, slug); err != nil {
			return err
		}
	}
	var scopes []string
	for _, name := range oidcScopes {
		pk, err := a.scope(ctx, name)
		if err != nil {
			return err
		}
		scopes = append(scopes, pk)
	}
	body["property_mappings"] = scopes
	body["signing_key"], err = a.signingKey(ctx)
	return err
}

// scope is the key of authentik's own mapping of a scope.
func (a *Authentik) scope(ctx context.Context, name string) (string, error) {
	var list struct {
		Results []struct {
			PK      string  `json:"pk"`
			Managed *string `json:"managed"`
		} `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, scopesPath+"?scope_name="+url.QueryEscape(name), nil, &list); err != nil {
		return "", err
	}
	for _, scope := range list.Results {
		if scope.Managed != nil && *scope.Managed == managedScopes+name {
			return scope.PK, nil
		}
	}
	return "", fmt.Errorf("authentik has no mapping of the scope %s, which comes with its default blueprints: its worker has not applied them yet, or somebody removed it", name)
}

// signingKey is the key of the pair that signs ID tokens: authentik's own, or any other with a private key.
// Without one they would be signed with the client's secret, and no key would be published.
func (a *Authentik) signingKey(ctx context.Context) (string, error) {
	var list struct {
		Results []struct {
			PK   string `json:"pk"`
			Name string `json:"name"`
		} `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, keyPairsPath+"?has_key=true&page_size=100", nil, &list); err != nil {
		return "", err
	}
	for _, pair := range list.Results {
		if pair.Name == selfSigned {
			return pair.PK, nil
		}
	}
	if len(list.Results) > 0 {
		return list.Results[0].PK, nil
	}
	return "", errors.New("authentik has no certificate with a private key to sign ID tokens with: its worker has not made one yet, or somebody removed it; generate one under System, Certificates")
}

// RemoveOIDC removes what EnsureOIDC made under this name, and with it every code and token; what is gone
// already is no error.
func (a *Authentik) RemoveOIDC(ctx context.Context, name string) error {
	if err := ignoreNotFound(a.call(ctx, http.MethodDelete, applicationsPath+url.PathEscape(name)+"/", nil, nil)); err != nil {
		return err
	}
	found, there, err := a.findOIDC(ctx, name)
	if err != nil || !there {
		return err
	}
	return ignoreNotFound(a.call(ctx, http.MethodDelete, oauthProviderURL(found), nil, nil))
}

func (a *Authentik) findOIDC(ctx context.Context, name string) (pk int64, found bool, err error) {
	var list struct {
		Results []struct {
			PK   int64  `json:"pk"`
			Name string `json:"name"`
		} `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, oauthProvidersPath+"?name="+url.QueryEscape(name), nil, &list); err != nil {
		return 0, false, err
	}
	for _, provider := range list.Results {
		if provider.Name == name {
			return provider.PK, true, nil
		}
	}
	return 0, false, nil
}

func oauthProviderURL(pk int64) string { return oauthProvidersPath + strconv.FormatInt(pk, 10) + "/" }
