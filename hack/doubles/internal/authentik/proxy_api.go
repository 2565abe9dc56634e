package authentik

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// The admin API of what forward auth needs: flows by slug, proxy providers, applications, the embedded outpost.

// flows is GET /flows/instances/?slug=….
func (s *Server) flows(c *call) error {
	if c.r.Method != http.MethodGet {
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var out []any
	var id uuid.UUID
	var name, slug, designation string
	err := c.d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name, &slug, &designation); err != nil {
			return err
		}
		out = append(out, map[string]any{"pk": id.String(), "name": name, "slug": slug, "designation": designation})
		return nil
	}, "SELECT flow_uuid, name, slug, designation FROM authentik_flows_flow WHERE ($1 = '' OR slug = $1) ORDER BY slug", c.r.URL.Query().Get("slug"))
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(out))
	return nil
}

// proxyProvider is a row of the three tables that make one, as the API shows it.
type proxyProvider struct {
	PK           int     `json:"pk"`
	Name         string  `json:"name"`
	Mode         string  `json:"mode"`
	ExternalHost string  `json:"external_host"`
	ClientID     string  `json:"client_id"`
	Validity     string  `json:"access_token_validity"`
	Application  *string `json:"assigned_application_slug"`
	AuthFlow     *string `json:"authorization_flow"`
	InvalidFlow  *string `json:"invalidation_flow"`
}

const proxyProviderSQL = `SELECT p.id, p.name, x.mode, x.external_host, c.client_id, c.access_token_validity, a.slug, p.authorization_flow_id::text, p.invalidation_flow_id::text
FROM authentik_core_provider p JOIN authentik_providers_oauth2_oauth2provider c ON c.provider_ptr_id = p.id
JOIN authentik_providers_proxy_proxyprovider x ON x.oauth2provider_ptr_id = p.id LEFT JOIN authentik_core_application a ON a.provider_id = p.id `

func (p *proxyProvider) fields() []any {
	return []any{&p.PK, &p.Name, &p.Mode, &p.ExternalHost, &p.ClientID, &p.Validity, &p.Application, &p.AuthFlow, &p.InvalidFlow}
}

// proxyInput is a request's body; what is nil was not sent.
type proxyInput struct {
	Name         *string `json:"name"`
	Mode         *string `json:"mode"`
	ExternalHost *string `json:"external_host"`
	InternalHost *string `json:"internal_host"`
	Validity     *string `json:"access_token_validity"`
	AuthFlow     *string `json:"authorization_flow"`
	InvalidFlow  *string `json:"invalidation_flow"`
}

// refused are the product's complaints about a provider: what is missing of a whole one, and that without a mode it
// is a proxy, which needs an internal host (authentik/providers/proxy/api.py).
func (in *proxyInput) refused(partial bool) map[string]any {
	out := map[string]any{}
	for field, v := range map[string]*string{"name": in.Name, "external_host": in.ExternalHost, "authorization_flow": in.AuthFlow, "invalidation_flow": in.InvalidFlow} {
		if !partial && (v == nil || *v == "") {
			out[field] = []string{"This field is required."}
		}
	}
	if (in.Mode == nil || *in.Mode == "proxy") && (in.InternalHost == nil || *in.InternalHost == "") {
		out["internal_host"] = []string{"Internal host cannot be empty when forward auth is disabled."}
	}
	if in.ExternalHost != nil {
		if u, err := url.Parse(*in.ExternalHost); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			out["external_host"] = []string{"Enter a valid URL."}
		}
	}
	return out
}

// proxyProviders is GET (by name__iexact) and POST /providers/proxy/.
func (s *Server) proxyProviders(c *call) error {
	switch c.r.Method {
	case http.MethodGet:
		var out []any
		err := c.d.all(func(r rowScanner) error {
			p := &proxyProvider{}
			out = append(out, p)
			return r.Scan(p.fields()...)
		}, proxyProviderSQL+"WHERE ($1 = '' OR UPPER(p.name) = UPPER($1)) ORDER BY p.name", c.r.URL.Query().Get("name__iexact"))
		if err != nil {
			return err
		}
		writeJSON(c.w, http.StatusOK, s.page(out))
		return nil
	case http.MethodPost:
	default:
		methodNotAllowed(c.w, c.r)
		return nil
	}
	var in proxyInput
	if err := readBody(c.r, &in); err != nil {
		writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
		return nil
	}
	if refused := in.refused(false); len(refused) > 0 {
		writeJSON(c.w, http.StatusBadRequest, refused)
		return nil
	}
	mode, validity := "proxy", "hours=24" // the product's defaults
	if in.Mode != nil {
		mode = *in.Mode
	}
	if in.Validity != nil {
		validity = *in.Validity
	}
	var id int
	err := c.d.inTx(func() error {
		if _, err := c.d.one([]any{&id}, "INSERT INTO authentik_core_provider (name, is_backchannel, authorization_flow_id, invalidation_flow_id) VALUES ($1, false, $2::uuid, $3::uuid) RETURNING id", *in.Name, *in.AuthFlow, *in.InvalidFlow); err != nil {
			return err
		}
		return firstError(
			c.d.exec("INSERT INTO authentik_providers_oauth2_oauth2provider (provider_ptr_id, client_id, client_secret, access_token_validity) VALUES ($1, $2, $3, $4)", id, randomString(40, alnum), randomString(128, alnum), validity),
			c.d.exec("INSERT INTO authentik_providers_proxy_proxyprovider (oauth2provider_ptr_id, external_host, mode, cookie_secret) VALUES ($1, $2, $3, $4)", id, *in.ExternalHost, mode, randomString(32, alnum)),
		)
	})
	var pe *pgconn.PgError
	if errors.As(err, &pe) && pe.Code == "23505" {
		writeJSON(c.w, http.StatusBadRequest, map[string]any{"name": []string{"provider with this name already exists."}})
		return nil
	}
	if err != nil {
		return err
	}
	return s.showProvider(c, id, "model_created", http.StatusCreated)
}

// showProvider writes the event of a change and answers with the provider.
func (s *Server) showProvider(c *call, id int, action string, status int) error {
	if action != "" {
		if err := s.event(c.d, c.r, action, map[string]any{"model": map[string]any{"pk": id, "app": "authentik_providers_proxy", "model_name": "proxyprovider"}}, c.user); err != nil {
			return err
		}
		s.embed.forget()
	}
	p := &proxyProvider{}
	found, err := c.d.one(p.fields(), proxyProviderSQL+"WHERE p.id = $1", id)
	if err != nil {
		return err
	}
	if !found {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No ProxyProvider matches the given query."})
		return nil
	}
	writeJSON(c.w, status, p)
	return nil
}

// oneProxyProvider is GET, PATCH and DELETE /providers/proxy/{pk}/.
func (s *Server) oneProxyProvider(c *call) error {
	id, _ := strconv.Atoi(c.r.PathValue("pk"))
	switch c.r.Method {
	case http.MethodGet:
		return s.showProvider(c, id, "", http.StatusOK)
	case http.MethodPatch:
		var in proxyInput
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		if refused := in.refused(true); len(refused) > 0 {
			writeJSON(c.w, http.StatusBadRequest, refused)
			return nil
		}
		err := firstError(
			c.d.exec("UPDATE authentik_core_provider SET name = COALESCE($2::text, name) WHERE id = $1", id, in.Name),
			c.d.exec("UPDATE authentik_providers_oauth2_oauth2provider SET access_token_validity = COALESCE($2::text, access_token_validity) WHERE provider_ptr_id = $1", id, in.Validity),
			c.d.exec("UPDATE authentik_providers_proxy_proxyprovider SET mode = COALESCE($2::text, mode), external_host = COALESCE($3::text, external_host) WHERE oauth2provider_ptr_id = $1", id, in.Mode, in.ExternalHost),
		)
		if err != nil {
			return err
		}
		return s.showProvider(c, id, "model_updated", http.StatusOK)
	case http.MethodDelete:
		var n int64
		err := c.d.inTx(func() (err error) {
			if n, err = c.d.affected("DELETE FROM authentik_providers_proxy_proxyprovider WHERE oauth2provider_ptr_id = $1", id); err != nil || n == 0 {
				return err
			}
			return firstError(
				c.d.exec("DELETE FROM authentik_outposts_outpost_providers WHERE provider_id = $1", id),
				c.d.exec("DELETE FROM authentik_providers_oauth2_authorizationcode WHERE ref_02_id = $1", id),
				c.d.exec("DELETE FROM authentik_providers_oauth2_accesstoken WHERE ref_02_id = $1", id),
				c.d.exec("UPDATE authentik_core_application SET provider_id = NULL WHERE provider_id = $1", id),
				c.d.exec("DELETE FROM authentik_providers_oauth2_oauth2provider WHERE provider_ptr_id = $1", id),
				c.d.exec("DELETE FROM authentik_core_provider WHERE id = $1", id),
			)
		})
		if err != nil {
			return err
		}
		if n == 0 {
			return s.showProvider(c, id, "", http.StatusOK)
		}
		if err := s.event(c.d, c.r, "model_deleted", map[string]any{"model": map[string]any{"pk": id, "app": "authentik_providers_proxy", "model_name": "proxyprovider"}}, c.user); err != nil {
			return err
		}
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	methodNotAllowed(c.w, c.r)
	return nil
}

// outpostInstance is an outpost as the API shows it.
type outpostInstance struct {
	PK        string          `json:"pk"`
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Managed   *string         `json:"managed"`
	Config    json.RawMessage `json:"config"`
	Providers []int           `json:"providers"`
}

const outpostSQL = `SELECT o.outpost_uuid::text, o.name, o.type, o.managed, o._config::text, ARRAY(SELECT provider_id FROM authentik_outposts_outpost_providers m WHERE m.outpost_id = o.outpost_uuid ORDER BY 1) FROM authentik_outposts_outpost o `

func (c *call) outpostsWhere(where string, args ...any) (list []any, err error) {
	err = c.d.all(func(r rowScanner) error {
		o, config := &outpostInstance{}, ""
		if err := r.Scan(&o.PK, &o.Name, &o.Type, &o.Managed, &config, &o.Providers); err != nil {
			return err
		}
		o.Config = json.RawMessage(config)
		o.Providers = slices.Clip(append([]int{}, o.Providers...)) // [] and not null
		list = append(list, o)
		return nil
	}, outpostSQL+where, args...)
	return list, err
}

// outposts is GET /outposts/instances/?managed__iexact=….
func (s *Server) outposts(c *call) error {
	if c.r.Method != http.MethodGet {
		methodNotAllowed(c.w, c.r)
		return nil
	}
	list, err := c.outpostsWhere("WHERE ($1 = '' OR UPPER(o.managed) = UPPER($1)) ORDER BY o.name", c.r.URL.Query().Get("managed__iexact"))
	if err != nil {
		return err
	}
	writeJSON(c.w, http.StatusOK, s.page(list))
	return nil
}

// oneOutpost is GET and PATCH /outposts/instances/{pk}/; providers and config are what can be changed.
func (s *Server) oneOutpost(c *call) error {
	id, err := uuid.Parse(c.r.PathValue("pk"))
	if err != nil {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No Outpost matches the given query."})
		return nil
	}
	switch c.r.Method {
	case http.MethodGet:
	case http.MethodPatch:
		var in struct {
			Providers []int           `json:"providers"`
			Config    json.RawMessage `json:"config"`
		}
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		err := c.d.inTx(func() error {
			if in.Config != nil {
				if err := c.d.exec("UPDATE authentik_outposts_outpost SET _config = $2::jsonb WHERE outpost_uuid = $1", id, string(in.Config)); err != nil {
					return err
				}
			}
			if in.Providers == nil {
				return nil
			}
			if err := c.d.exec("DELETE FROM authentik_outposts_outpost_providers WHERE outpost_id = $1", id); err != nil {
				return err
			}
			for _, provider := range in.Providers {
				if err := c.d.exec("INSERT INTO authentik_outposts_outpost_providers (outpost_id, provider_id) VALUES ($1, $2)", id, provider); err != nil {
					return err
				}
			}
			return nil
		})
		var pe *pgconn.PgError
		if errors.As(err, &pe) && pe.Code == "23503" {
			writeJSON(c.w, http.StatusBadRequest, map[string]any{"providers": []string{"Invalid pk - object does not exist."}})
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.event(c.d, c.r, "model_updated", map[string]any{"model": map[string]any{"pk": id.String(), "app": "authentik_outposts", "model_name": "outpost"}}, c.user); err != nil {
			return err
		}
		s.embed.forget()
	default:
		methodNotAllowed(c.w, c.r)
		return nil
	}
	list, err := c.outpostsWhere("WHERE o.outpost_uuid = $1", id)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No Outpost matches the given query."})
		return nil
	}
	writeJSON(c.w, http.StatusOK, list[0])
	return nil
}
