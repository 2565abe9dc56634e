package idp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
)

// What the admin API of authentik 2025.2 to 2026.8 calls things (authentik/providers/proxy/api.py,
// authentik/outposts/apps.py, blueprints/default/flow-default-provider-*.yaml).
const (
	embeddedOutpost  = "goauthentik.io/outposts/embedded"
	authorizeFlow    = "default-provider-authorization-implicit-consent"
	invalidationFlow = "default-provider-invalidation-flow"

	providersPath    = "/api/v3/providers/proxy/"
	applicationsPath = "/api/v3/core/applications/"
	outpostsPath     = "/api/v3/outposts/instances/"
)

// sessionValidity of the provider's access tokens, and so of the outpost's sessions: longer than any
// run, and short enough that what a run leaves in the table of sessions is gone the same day.
const sessionValidity = "hours=4"

// outpostAnswers is how many checks in a row, each on a connection of its own, the outpost must answer
// for a new application: each replica of the server has an outpost that learns of it by itself, up to
// ten seconds late (internal/outpost/ak/api_ws.go). With two replicas one that does not know yet gets
// past them once in 256 times.
const outpostAnswers = 8

// ErrNotAnswering is that the embedded outpost does not know an application yet.
var ErrNotAnswering = errors.New("authentik's embedded outpost does not answer for the application yet")

// ForwardAuth is an application behind a proxy provider in mode forward_single on the embedded outpost.
type ForwardAuth struct {
	// Name of the provider and the application, and the application's slug.
	Name string
	// Host of the application, for example app.example.com; authentik never asks for it.
	Host string
	// Portal is where people reach authentik, for example https://sso.example.com.
	Portal string
}

// EnsureForwardAuth makes the application, unless it is there, and returns ErrNotAnswering until the
// outpost answers for it. An embedded outpost that was never told where people reach authentik, and so
// would send them to localhost, is told; that stays.
func (a *Authentik) EnsureForwardAuth(ctx context.Context, app ForwardAuth) error {
	made, err := a.ensureProvider(ctx, app)
	if err != nil {
		return err
	}
	// The outpost takes up providers that have an application, when its list of providers changes.
	if err := a.ensureApplication(ctx, app.Name, made.PK); err != nil {
		return err
	}
	err = a.changeOutpost(ctx, func(outpost *outpost) map[string]any {
		change := map[string]any{}
		if !slices.Contains(outpost.Providers, made.PK) {
			change["providers"] = append(outpost.Providers, made.PK)
		}
		if host, _ := outpost.Config["authentik_host"].(string); host == "" {
			outpost.Config["authentik_host"] = app.Portal
			change["config"] = outpost.Config
		}
		return change
	})
	if err != nil {
		return err
	}
	return a.answers(ctx, app.Host, made.ClientID)
}

// RemoveForwardAuth removes what EnsureForwardAuth made under this name; what is gone already is no error.
func (a *Authentik) RemoveForwardAuth(ctx context.Context, name string) error {
	made, found, err := a.findProvider(ctx, name)
	if err != nil {
		return err
	}
	if found {
		err := a.changeOutpost(ctx, func(outpost *outpost) map[string]any {
			if !slices.Contains(outpost.Providers, made.PK) {
				return nil
			}
			return map[string]any{"providers": slices.DeleteFunc(outpost.Providers, func(pk int64) bool { return pk == made.PK })}
		})
		if err != nil && !errors.Is(err, errNoOutpost) {
			return err
		}
	}
	if err := ignoreNotFound(a.call(ctx, http.MethodDelete, applicationsPath+url.PathEscape(name)+"/", nil, nil)); err != nil {
		return err
	}
	if !found {
		return nil
	}
	return ignoreNotFound(a.call(ctx, http.MethodDelete, providerURL(made.PK), nil, nil))
}

type provider struct {
	PK           int64  `json:"pk"`
	Name         string `json:"name"`
	ClientID     string `json:"client_id"`
	ExternalHost string `json:"external_host"`
	Mode         string `json:"mode"`
}

func (a *Authentik) findProvider(ctx context.Context, name string) (provider, bool, error) {
	var list struct {
		Results []provider `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, providersPath+"?name__iexact="+url.QueryEscape(name), nil, &list); err != nil {
		return provider{}, false, err
	}
	for _, found := range list.Results {
		if found.Name == name {
			return found, true, nil
		}
	}
	return provider{}, false, nil
}

func (a *Authentik) ensureProvider(ctx context.Context, app ForwardAuth) (provider, error) {
	const mode = "forward_single"
	external := "https://" + app.Host
	found, there, err := a.findProvider(ctx, app.Name)
	if err != nil || there && found.ExternalHost == external && found.Mode == mode {
		return found, err
	}
	body := map[string]any{"name": app.Name, "mode": mode, "external_host": external, "access_token_validity": sessionValidity}
	method, path := http.MethodPatch, providerURL(found.PK)
	if !there {
		method, path = http.MethodPost, providersPath
		for field, slug := range map[string]string{"authorization_flow": authorizeFlow, "invalidation_flow": invalidationFlow} {
			if body[field], err = a.flow(ctx, slug); err != nil {
				return provider{}, err
			}
		}
	}
	var made provider
	err = a.call(ctx, method, path, body, &made)
	return made, err
}

// flow is the key of a flow.
func (a *Authentik) flow(ctx context.Context, slug string) (string, error) {
	var list struct {
		Results []struct {
			PK   string `json:"pk"`
			Slug string `json:"slug"`
		} `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, "/api/v3/flows/instances/?slug="+url.QueryEscape(slug), nil, &list); err != nil {
		return "", err
	}
	for _, flow := range list.Results {
		if flow.Slug == slug {
			return flow.PK, nil
		}
	}
	return "", fmt.Errorf("authentik has no flow %s, which comes with its default blueprints: its worker has not applied them yet, or somebody removed it", slug)
}

func (a *Authentik) ensureApplication(ctx context.Context, name string, provider int64) error {
	var found struct {
		Provider *int64 `json:"provider"`
	}
	path := applicationsPath + url.PathEscape(name) + "/"
	err := a.call(ctx, http.MethodGet, path, nil, &found)
	switch {
	case err == nil && found.Provider != nil && *found.Provider == provider:
		return nil
	case err == nil:
		return a.call(ctx, http.MethodPatch, path, map[string]any{"provider": provider}, nil)
	case ignoreNotFound(err) != nil:
		return err
	}
	// blank://blank keeps it off everybody's page of applications.
	return a.call(ctx, http.MethodPost, applicationsPath, map[string]any{
		"name": name, "slug": name, "provider": provider, "meta_launch_url": "blank://blank"}, nil)
}

type outpost struct {
	PK        string         `json:"pk"`
	Providers []int64        `json:"providers"`
	Config    map[string]any `json:"config"`
	Managed   string         `json:"managed"`
}

var errNoOutpost = errors.New("authentik has no embedded outpost; forward auth needs it, so do not set AUTHENTIK_OUTPOSTS__DISABLE_EMBEDDED_OUTPOST")

// outposts has a lock for each authentik: the list of providers is read, changed and written back
// whole, and two tests of one stack may end and begin at the same time.
var outposts sync.Map

// changeOutpost writes what change makes of the embedded outpost; nothing where it makes nothing.
func (a *Authentik) changeOutpost(ctx context.Context, change func(*outpost) map[string]any) error {
	lock, _ := outposts.LoadOrStore(a.BaseURL, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	var list struct {
		Results []outpost `json:"results"`
	}
	if err := a.call(ctx, http.MethodGet, outpostsPath+"?managed__iexact="+url.QueryEscape(embeddedOutpost), nil, &list); err != nil {
		return err
	}
	at := slices.IndexFunc(list.Results, func(o outpost) bool { return o.Managed == embeddedOutpost })
	if at < 0 {
		return errNoOutpost
	}
	found := &list.Results[at]
	if found.Config == nil {
		found.Config = map[string]any{}
	}
	changes := change(found)
	if len(changes) == 0 {
		return nil
	}
	return a.call(ctx, http.MethodPatch, outpostsPath+url.PathEscape(found.PK)+"/", changes, nil)
}

// answers asks the outpost as a reverse proxy does, without a session: it must send the browser to the
// provider with this client ID, or to the start of the application. An outpost with a single other
// application answers for any host, and names that one.
func (a *Authentik) answers(ctx context.Context, host, clientID string) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	client := &http.Client{Timeout: a.client().Timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for range outpostAnswers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.BaseURL+"/outpost.goauthentik.io/auth/traefik", nil)
		if err != nil {
			return errors.New("authentik's address is no URL")
		}
		request.Host = host
		for name, value := range map[string]string{"X-Forwarded-Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-Uri": "/", "X-Forwarded-Method": http.MethodGet} {
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotAnswering, reason(err))
		}
		_ = response.Body.Close()
		to, err := response.Location()
		ours := err == nil && (to.Query().Get("client_id") == clientID || to.Host == host && to.Path == "/outpost.goauthentik.io/start")
		if !ours {
			return fmt.Errorf("%w (status %d)", ErrNotAnswering, response.StatusCode)
		}
	}
	return nil
}

func providerURL(pk int64) string { return providersPath + strconv.FormatInt(pk, 10) + "/" }

func ignoreNotFound(err error) error {
	var status *StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		return nil
	}
	return err
}
