package authentik

import (
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// appListPadding makes the cached list of eight applications more than 30 kB of base64 text, as measured.
const appListPadding = 3000

// applications is POST /core/applications/, and GET: 43 statements by cookie, 47 by token, and no commit on a cache hit; on a
// miss 38 more and one cache upsert (facts/authentik-measured.md §2.2). Either way two queries of 63 joins are
// planned afresh, for the request's connection is new. Policies are not evaluated: every user sees every application.
func (s *Server) applications(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		s.api(admin, budget{50, 23}, s.createApplication)(w, r)
		return
	default:
		methodNotAllowed(w, r)
		return
	}
	b := budget{43, 21}
	if r.Header.Get("Authorization") != "" {
		b = budget{47, 23}
	}
	d, err := s.cfg.open(r.Context(), b)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer d.close()
	u, _, ok := s.identify(w, r, d)
	if !ok {
		return
	}
	if u == nil {
		writeJSON(w, http.StatusForbidden, map[string]string{"detail": "Authentication credentials were not provided."})
		return
	}
	apps, ids, err := s.listApplications(d)
	if err == nil {
		err = d.all(nil, s.bindingsSQL, ids)
	}
	key := appListPrefix + strconv.Itoa(u.ID) + "/1"
	hit := false
	if err == nil {
		_, hit, err = s.cache.get(d, key)
		// An empty list is no hit: a user without applications writes the cache at each GET.
		hit = hit && len(apps) > 0
	}
	if err == nil && !hit {
		d.others, d.sets = d.others+19, d.sets+19
		if err = d.fill(1); err == nil {
			err = s.cache.set(d, key, pickle(appListPadding*max(1, len(apps))), 24*time.Hour)
		}
	}
	if err == nil {
		err = d.finish()
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, s.page(apps))
}

// listApplications runs the first big query for its planning and its rows' keys, and reads what the answer needs.
func (s *Server) listApplications(d *reqDB) (apps []any, ids []string, err error) {
	if err := d.all(nil, s.appsSQL); err != nil {
		return nil, nil, err
	}
	var id uuid.UUID
	var name, slug, group, launch string
	var provider *int
	var tab bool
	err = d.all(func(r rowScanner) error {
		if err := r.Scan(&id, &name, &slug, &group, &tab, &launch, &provider); err != nil {
			return err
		}
		ids = append(ids, id.String())
		apps = append(apps, map[string]any{"pk": id.String(), "name": name, "slug": slug, "provider": provider,
			"provider_obj":          map[string]any{"pk": provider, "name": name, "component": "ak-provider-oauth2-form", "assigned_application_slug": slug, "assigned_application_name": name, "verbose_name": "OAuth2/OpenID Provider", "verbose_name_plural": "OAuth2/OpenID Providers", "meta_model_name": "authentik_providers_oauth2.oauth2provider"},
			"backchannel_providers": []any{}, "backchannel_providers_obj": []any{}, "launch_url": launch, "open_in_new_tab": tab, "meta_launch_url": launch, "meta_icon": nil, "meta_description": "", "meta_publisher": "", "policy_engine_mode": "any", "group": group})
		return nil
	}, `SELECT policybindingmodel_ptr_id, name, slug, "group", open_in_new_tab, meta_launch_url, provider_id FROM authentik_core_application ORDER BY name LIMIT 100`)
	return apps, ids, err
}
