package authentik

import (
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

type applicationInput struct {
	Name      string  `json:"name"`
	Slug      string  `json:"slug"`
	Provider  *int    `json:"provider"`
	LaunchURL *string `json:"meta_launch_url"`
}

// createApplication is POST /core/applications/.
func (s *Server) createApplication(c *call) error {
	var in applicationInput
	if err := readBody(c.r, &in); err != nil {
		writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
		return nil
	}
	missing := map[string]any{}
	for field, v := range map[string]string{"name": in.Name, "slug": in.Slug} {
		if v == "" {
			missing[field] = []string{"This field is required."}
		}
	}
	if len(missing) > 0 {
		writeJSON(c.w, http.StatusBadRequest, missing)
		return nil
	}
	launch := ""
	if in.LaunchURL != nil {
		launch = *in.LaunchURL
	}
	id := uuid.New()
	err := c.d.inTx(func() error {
		return firstError(
			c.d.exec("INSERT INTO authentik_policies_policybindingmodel VALUES ($1, 'any')", id),
			c.d.exec(`INSERT INTO authentik_core_application (policybindingmodel_ptr_id, name, slug, "group", open_in_new_tab, meta_launch_url, meta_icon, meta_description, meta_publisher, provider_id) VALUES ($1, $2, $3, '', false, $4, '', '', '', $5)`, id, in.Name, in.Slug, launch, in.Provider),
		)
	})
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "23505" || pe.Code == "23503") {
		writeJSON(c.w, http.StatusBadRequest, map[string]any{"non_field_errors": []string{"slug and provider must be unique, and the provider must exist."}})
		return nil
	}
	if err != nil {
		return err
	}
	return s.showApplication(c, in.Slug, "model_created", http.StatusCreated)
}

// showApplication writes the event of a change and answers with the application.
func (s *Server) showApplication(c *call, slug, action string, status int) error {
	if action != "" {
		if err := s.event(c.d, c.r, action, map[string]any{"model": map[string]any{"pk": slug, "app": "authentik_core", "model_name": "application"}}, c.user); err != nil {
			return err
		}
		s.embed.forget()
	}
	var id uuid.UUID
	var name, launch string
	var provider *int
	found, err := c.d.one([]any{&id, &name, &launch, &provider}, "SELECT policybindingmodel_ptr_id, name, meta_launch_url, provider_id FROM authentik_core_application WHERE slug = $1", slug)
	if err != nil {
		return err
	}
	if !found {
		writeJSON(c.w, http.StatusNotFound, map[string]string{"detail": "No Application matches the given query."})
		return nil
	}
	writeJSON(c.w, status, map[string]any{"pk": id.String(), "name": name, "slug": slug, "provider": provider, "meta_launch_url": launch, "policy_engine_mode": "any", "group": ""})
	return nil
}

// oneApplication is GET, PATCH and DELETE /core/applications/{slug}/.
func (s *Server) oneApplication(c *call) error {
	slug := c.r.PathValue("slug")
	switch c.r.Method {
	case http.MethodGet:
		return s.showApplication(c, slug, "", http.StatusOK)
	case http.MethodPatch:
		var in applicationInput
		if err := readBody(c.r, &in); err != nil {
			writeJSON(c.w, http.StatusBadRequest, map[string]string{"detail": "JSON parse error"})
			return nil
		}
		if err := c.d.exec("UPDATE authentik_core_application SET provider_id = COALESCE($2::integer, provider_id) WHERE slug = $1", slug, in.Provider); err != nil {
			return err
		}
		return s.showApplication(c, slug, "model_updated", http.StatusOK)
	case http.MethodDelete:
		var id uuid.UUID
		found, err := c.d.one([]any{&id}, "SELECT policybindingmodel_ptr_id FROM authentik_core_application WHERE slug = $1", slug)
		if err != nil {
			return err
		}
		if !found {
			return s.showApplication(c, slug, "", http.StatusOK)
		}
		err = c.d.inTx(func() error {
			return firstError(
				c.d.exec("DELETE FROM authentik_policies_policybinding WHERE target_id = $1", id),
				c.d.exec("DELETE FROM authentik_core_application WHERE policybindingmodel_ptr_id = $1", id),
				c.d.exec("DELETE FROM authentik_policies_policybindingmodel WHERE pbm_uuid = $1", id),
			)
		})
		if err != nil {
			return err
		}
		if err := s.event(c.d, c.r, "model_deleted", map[string]any{"model": map[string]any{"pk": slug, "app": "authentik_core", "model_name": "application"}}, c.user); err != nil {
			return err
		}
		s.embed.forget()
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	methodNotAllowed(c.w, c.r)
	return nil
}
