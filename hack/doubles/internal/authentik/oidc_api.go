package authentik

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// The admin API of what a client of OpenID Connect needs: providers, scope mappings, key pairs.

var errNoSubject = errors.New("the token's user is gone, or its provider has no signing key")

// scopeMappings is GET /propertymappings/provider/scope/?scope_name=….
func (s *Server) scopeMappings(c *call) error {
	if c.r.Method != http.MethodGet {
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var out []any
	var id uuid.UUID
	var name, scope, managed string
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name, &scope, &managed); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "managed": managed, "name": name, "scope_name": scope, "description": ""})
		return nil
	}, "SELECT m.propertymapping_uuid, m.name, s.scope_name, m.managed FROM authentik_providers_oauth2_scopemapping s JOIN authentik_core_propertymapping m ON m.propertymapping_uuid = s.propertymapping_ptr_id WHERE ($1 = '' OR s.scope_name = $1) ORDER BY s.scope_name", c.r.URL.Query().Get("scope_name"))
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}

// keyPairs is GET /crypto/certificatekeypairs/: every pair of the double has its key, and no answer shows it.
func (s *Server) keyPairs(c *call) error {
	if c.r.Method != http.MethodGet {
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var out []any
	var id uuid.UUID
	var name string
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "name": name})
		return nil
	}, "SELECT certificatekeypair_uuid, name FROM authentik_crypto_certificatekeypair WHERE name IS NOT NULL ORDER BY name")
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}

// oauthInput is a request's body; what is nil was not sent.
type oauthInput struct {
	Name         *string         `json:"name"`
	ClientType   *string         `json:"client_type"`
	ClientID     *string         `json:"client_id"`
	ClientSecret *string         `json:"client_secret"`
	Redirects    json.RawMessage `json:"redirect_uris"`
	Refresh      *string         `json:"refresh_token_validity"`
	AuthFlow     *string         `json:"authorization_flow"`
	InvalidFlow  *string         `json:"invalidation_flow"`
	Mappings     []uuid.UUID     `json:"property_mappings"`
	SigningKey   *uuid.UUID      `json:"signing_key"`
	GrantTypes   []string        `json:"grant_types"`
}

// refused are the product's complaints about what is missing of a whole provider.
func (in *oauthInput) refused() map[string]any {
	out := map[string]any{}
	for field, v := range map[string]*string{"name": in.Name, "authorization_flow": in.AuthFlow, "invalidation_flow": in.InvalidFlow} {
		if v == nil || *v == "" {
			out[field] = []string{"This field is required."}
		}
	}
	if in.Redirects == nil {
		out["redirect_uris"] = []string{"This field is required."}
	}
	return out
}

// redirects is the list as the column holds it; nil where it was not sent, false where it is no list of objects.
func (in *oauthInput) redirects() (*string, bool) {
	if in.Redirects == nil {
		return nil, true
	}
	var list []struct {
		Mode string `json:"matching_mode"`
		URL  string `json:"url"`
	}
	if json.Unmarshal(in.Redirects, &list) != nil {
		return nil, false
	}
	text := string(in.Redirects)
	return &text, true
}

// oauthProviders is GET (by name) and POST /providers/oauth2/.
func (s *Server) oauthProviders(c *call) error {
	switch c.r.Method {
	case http.MethodGet:
		list, err := s.oauthWhere(c, "($1 = '' OR p.name = $1)", c.r.URL.Query().Get("name"))
		if err != nil {
			return err
		}
		writeJSON(c.w, http.StatusOK, s.page(list))
		return nil
	case http.MethodPost:
	default:
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var in oauthInput
	if err := readBody(c.r, &in); err != nil {
		writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
		return nil
	}
	refused := in.refused()
	redirects, list := in.redirects()
	if !list {
		refused["redirect_uris"] = []string{`Expected a list of items.`}
	}
	if len(refused) > 0 {
		writeJSON(c.w, http.StatusBadRequest, refused)
		return nil
	}
	or := func(v *string, def string) string {
		if v == nil {
			return def
		}
		return *v
	}
	// What may be asked for is the administrator's to say from 2026.5; nobody has seen what the product has for a default.
	grants := in.GrantTypes
	if grants == nil {
		grants = []string{}
	}
	var id int
	err := c.d.inTx(func() error {
		if _, err := c.d.one([]any{&id}, "INSERT INTO authentik_core_provider (name, is_backchannel, authorization_flow_id, invalidation_flow_id) VALUES ($1, false, $2::uuid, $3::uuid) RETURNING id", *in.Name, *in.AuthFlow, *in.InvalidFlow); err != nil {
			return err
		}
		err := c.d.exec("INSERT INTO authentik_providers_oauth2_oauth2provider (provider_ptr_id, client_type, client_id, client_secret, access_token_validity, refresh_token_validity, _redirect_uris, grant_types, ref_01_id) VALUES ($1, $2, $3, $4, 'hours=1', $5, $6::jsonb, $7, $8)",
			id, or(in.ClientType, "confidential"), or(in.ClientID, randomString(40, alnum)), or(in.ClientSecret, randomString(128, alnum)), or(in.Refresh, "days=30"), *redirects, grants, in.SigningKey)
		for _, mapping := range in.Mappings {
			err = firstError(err, c.d.exec("INSERT INTO authentik_core_provider_property_mappings (provider_id, propertymapping_id) VALUES ($1, $2)", id, mapping))
		}
		return err
	})
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "23505" || pe.Code == "23503") {
		writeJSON(c.w, http.StatusBadRequest, map[string]any{"non_field_errors": []string{"name and client_id must be unique, and what is named must exist."}})
		return nil
	}
	if err != nil {
		return err
	}
	return s.showOAuth(c, id, "model_created", http.StatusCreated)
}

// oauthWhere are providers as the API shows them.
func (s *Server) oauthWhere(c *call, where string, arg any) (list []any, err error) {
	err = c.d.all(func(r rowScanner) error {
		var pk int
		var name, kind, client, secret, redirects string
		var slug *string
		var grants []string
		if err := r.Scan(&pk, &name, &kind, &client, &secret, &redirects, &slug, &grants); err != nil {
			return err
		}
		one := map[string]any{"pk": pk, "name": name, "client_type": kind, "client_id": client, "client_secret": secret, "redirect_uris": json.RawMessage(redirects), "assigned_application_slug": slug}
		if s.cfg.GrantTypes {
			one["grant_types"] = append([]string{}, grants...)
		}
		list = append(list, one)
		return nil
	}, `SELECT p.id, p.name, c.client_type, c.client_id, c.client_secret, c._redirect_uris::text, a.slug, c.grant_types FROM authentik_core_provider p JOIN authentik_providers_oauth2_oauth2provider c ON c.provider_ptr_id = p.id
LEFT JOIN authentik_core_application a ON a.provider_id = p.id WHERE c.client_type IS NOT NULL AND `+where+" ORDER BY p.name", arg)
	return list, err
}

// showOAuth writes the event of a change and answers with the provider.
func (s *Server) showOAuth(c *call, id int, action string, status int) error {
	if action != "" {
		if err := s.event(c.d, c.r, action, oauthModel(id), c.user); err != nil {
			return err
		}
	}
	list, err := s.oauthWhere(c, "p.id = $1", id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No OAuth2Provider matches the given query."})
		return nil
	}
	writeJSON(c.w, status, list[0])
	return nil
}

func oauthModel(id int) map[string]any {
	return map[string]any{"model": map[string]any{"pk": id, "app": "authentik_providers_oauth2", "model_name": "oauth2provider"}}
}

// oneOAuthProvider is GET, PATCH and DELETE /providers/oauth2/{pk}/. With a provider go its codes and tokens.
func (s *Server) oneOAuthProvider(c *call) error {
	id, _ := strconv.Atoi(c.r.PathValue("pk"))
	switch c.r.Method {
	case http.MethodGet:
		return s.showOAuth(c, id, "", http.StatusOK)
	case http.MethodPatch:
		var in oauthInput
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		redirects, list := in.redirects()
		if !list {
			writeJSON(c.w, http.StatusBadRequest, map[string]any{"redirect_uris": []string{"Expected a list of items."}})
			return nil
		}
		err := firstError(
			c.d.exec("UPDATE authentik_core_provider SET name = COALESCE($2::text, name) WHERE id = $1", id, in.Name),
			c.d.exec(`UPDATE authentik_providers_oauth2_oauth2provider SET client_type = COALESCE($2::text, client_type), client_id = COALESCE($3::text, client_id), client_secret = COALESCE($4::text, client_secret),
_redirect_uris = COALESCE($5::jsonb, _redirect_uris), refresh_token_validity = COALESCE($6::text, refresh_token_validity), grant_types = COALESCE($7::text[], grant_types) WHERE provider_ptr_id = $1`,
				id, in.ClientType, in.ClientID, in.ClientSecret, redirects, in.Refresh, in.GrantTypes),
		)
		if err != nil {
			return err
		}
		return s.showOAuth(c, id, "model_updated", http.StatusOK)
	case http.MethodDelete:
		var n int64
		err := c.d.inTx(func() (err error) {
			for _, sql := range []string{
				"DELETE FROM authentik_core_provider_property_mappings WHERE provider_id = $1",
				"DELETE FROM authentik_providers_oauth2_authorizationcode WHERE ref_02_id = $1",
				"DELETE FROM authentik_providers_oauth2_accesstoken WHERE ref_02_id = $1",
				"DELETE FROM authentik_providers_oauth2_refreshtoken WHERE ref_02_id = $1",
				"UPDATE authentik_core_application SET provider_id = NULL WHERE provider_id = $1",
			} {
				if err := c.d.exec(sql, id); err != nil {
					return err
				}
			}
			if n, err = c.d.affected("DELETE FROM authentik_providers_oauth2_oauth2provider WHERE provider_ptr_id = $1", id); err != nil || n == 0 {
				return err
			}
			return c.d.exec("DELETE FROM authentik_core_provider WHERE id = $1", id)
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return s.showOAuth(c, id, "", http.StatusOK)
		}
		if err := s.event(c.d, c.r, "model_deleted", oauthModel(id), c.user); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	methodNotAllowed(c.w, c.r)
	return nil
}
