package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/internal/authentik"
)

const (
	applications = "/api/v3/core/applications/"
	providers    = "/api/v3/providers/proxy/"
	outposts     = "/api/v3/outposts/instances/"
	// outpostPatience is how long the embedded outpost may take to learn of a new application: the worker tells it
	// through a websocket, and it waits up to ten seconds by itself.
	outpostPatience = time.Minute
	maxHops         = 12
)

// protected is an application behind the embedded outpost.
type protected struct {
	name, host, portal, clientID string
	pk                           float64
	outpost                      string
	others                       []any // the providers that the outpost had before
}

// cookie of the outpost's session.
func (p *protected) cookie() string {
	h := sha256.Sum256([]byte(p.clientID))
	return "authentik_proxy_" + hex.EncodeToString(h[:4])
}

// ask makes a request to the application's host.
func (p *protected) ask(c *client, path string, header ...string) (*answer, error) {
	return c.do(http.MethodGet, path, nil, append([]string{"Host", p.host, "X-Forwarded-Host", p.host, "X-Forwarded-Proto", "https", "Accept", "text/html"}, header...)...)
}

// check is a reverse proxy's question about GET https://host/app.
func (p *protected) check(c *client, proxy string) (*answer, error) {
	return p.ask(c, "/outpost.goauthentik.io/auth/"+proxy, "X-Forwarded-Uri", "/app", "X-Forwarded-Method", "GET", "X-Original-Url", "https://"+p.host+"/app")
}

// forwardAuth makes an application behind the embedded outpost, asks for it as reverse proxies do, and removes it.
func (s *suite) forwardAuth(admin *client, user, password string) error {
	p := &protected{name: fmt.Sprintf("conformance-%d", time.Now().UnixNano())}
	p.host = p.name + ".example.com"
	defer func() { // what a failed check left behind
		_, _ = admin.do(http.MethodDelete, applications+p.name+"/", nil)
		_, _ = admin.do(http.MethodDelete, fmt.Sprintf("%s%.0f/", providers, p.pk), nil)
	}()
	if ok, err := s.makeProtected(admin, p); err != nil || !ok {
		return err
	}
	if !s.outpostAnswers(p) {
		return nil
	}
	if err := s.strangers(p); err != nil {
		return err
	}
	c := s.client()
	if err := c.loginAuthentik(user, password); err != nil {
		s.check("login for forward-auth", false, "%v", err)
		return nil
	}
	hops, err := s.enter(c, p)
	if !s.check("first sight: start, authorisation, callback", err == nil, "%s %v", strings.Join(hops, " "), err) {
		return nil
	}
	for _, proxy := range []string{"traefik", "nginx", "caddy", "envoy"} {
		a, err := p.check(c, proxy)
		if err != nil {
			return err
		}
		s.check("forward-auth "+proxy+", logged in", a.status == 200 && a.header.Get("X-Authentik-Username") == user, "status %d, X-authentik-username %q", a.status, a.header.Get("X-Authentik-Username"))
	}
	if s.o.DSN != "" {
		if err := s.countForwardAuth(p, c); err != nil {
			return err
		}
	}
	return s.removeProtected(admin, p)
}

func results(a *answer) (list []map[string]any) {
	all, _ := a.body["results"].([]any)
	for _, one := range all {
		if m, ok := one.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// makeProtected makes provider and application and gives the provider to the embedded outpost.
func (s *suite) makeProtected(admin *client, p *protected) (bool, error) {
	body := map[string]any{"name": p.name, "external_host": "https://" + p.host}
	for field, slug := range map[string]string{"authorization_flow": "default-provider-authorization-implicit-consent", "invalidation_flow": "default-provider-invalidation-flow"} {
		a, err := admin.do(http.MethodGet, "/api/v3/flows/instances/?slug="+slug, nil)
		if err != nil {
			return false, err
		}
		flows := results(a)
		if !s.check("GET flow "+slug, a.status == 200 && len(flows) == 1, "status %d, %d results", a.status, len(flows)) {
			return false, nil
		}
		body[field] = flows[0]["pk"]
	}
	a, err := admin.do(http.MethodPost, providers, body)
	if err != nil {
		return false, err
	}
	s.check("POST proxy provider without a mode is a proxy without an internal host", a.status == 400, "status %d, want 400", a.status)
	body["mode"] = "forward_single"
	if a, err = admin.do(http.MethodPost, providers, body); err != nil {
		return false, err
	}
	p.pk, _ = a.body["pk"].(float64)
	p.clientID = a.str("client_id")
	if !s.check("POST proxy provider", a.status == 201 && p.pk > 0 && p.clientID != "", "status %d, pk %v", a.status, p.pk) {
		return false, nil
	}
	if a, err = admin.do(http.MethodPost, providers, body); err != nil {
		return false, err
	}
	s.check("POST the same provider", a.status == 400, "status %d, want 400", a.status)
	if a, err = admin.do(http.MethodGet, providers+"?name__iexact="+p.name, nil); err != nil {
		return false, err
	}
	s.check("GET proxy providers by name", a.status == 200 && len(results(a)) == 1, "status %d, %d results", a.status, len(results(a)))
	if a, err = admin.do(http.MethodGet, applications+p.name+"/", nil); err != nil {
		return false, err
	}
	s.check("GET an application that is not there", a.status == 404, "status %d, want 404", a.status)
	if a, err = admin.do(http.MethodPost, applications, map[string]any{"name": p.name, "slug": p.name, "provider": p.pk, "meta_launch_url": "blank://blank"}); err != nil {
		return false, err
	}
	s.check("POST application", a.status == 201, "status %d, want 201", a.status)
	if a, err = admin.do(http.MethodGet, applications+p.name+"/", nil); err != nil {
		return false, err
	}
	s.check("GET application", a.status == 200 && a.body["provider"] == p.pk, "status %d, provider %v", a.status, a.body["provider"])
	return s.giveToOutpost(admin, p)
}

func (s *suite) giveToOutpost(admin *client, p *protected) (bool, error) {
	a, err := admin.do(http.MethodGet, outposts+"?managed__iexact=goauthentik.io/outposts/embedded", nil)
	if err != nil {
		return false, err
	}
	list := results(a)
	if !s.check("GET the embedded outpost", a.status == 200 && len(list) == 1, "status %d, %d results", a.status, len(list)) {
		return false, nil
	}
	p.outpost, _ = list[0]["pk"].(string)
	p.others, _ = list[0]["providers"].([]any)
	config, _ := list[0]["config"].(map[string]any)
	change := map[string]any{"providers": append(append([]any{}, p.others...), p.pk)}
	if p.portal, _ = config["authentik_host"].(string); p.portal == "" && config != nil {
		p.portal = "https://conformance.example.com"
		config["authentik_host"] = p.portal
		change["config"] = config
	}
	if a, err = admin.do(http.MethodPatch, outposts+p.outpost+"/", change); err != nil {
		return false, err
	}
	has, _ := a.body["providers"].([]any)
	return s.check("PATCH the embedded outpost", a.status == 200 && len(has) == len(p.others)+1, "status %d, %d providers", a.status, len(has)), nil
}

// outpostAnswers waits until the outpost sends people to the provider.
func (s *suite) outpostAnswers(p *protected) bool {
	said := ""
	for until := time.Now().Add(outpostPatience); time.Now().Before(until); time.Sleep(time.Second) {
		a, err := p.check(s.client(), "traefik")
		if err != nil {
			said = err.Error()
			continue
		}
		said = fmt.Sprintf("status %d", a.status)
		if to, err := url.Parse(a.header.Get("Location")); err == nil && to.Query().Get("client_id") == p.clientID {
			return s.check("the outpost answers for a new application", true, "")
		}
	}
	return s.check("the outpost answers for a new application", false, "%s after %v", said, outpostPatience)
}

// strangers checks the refusals.
func (s *suite) strangers(p *protected) error {
	for _, proxy := range []string{"traefik", "caddy"} {
		c := s.client()
		a, err := p.check(c, proxy)
		if err != nil {
			return err
		}
		to, _ := url.Parse(a.header.Get("Location"))
		if !s.check("forward-auth "+proxy+", anonymous", a.status == 302 && to != nil && to.Path == "/application/o/authorize/", "status %d to %s", a.status, a.header.Get("Location")) {
			continue
		}
		q := to.Query()
		s.check("the authorisation that "+proxy+" is sent to", q.Get("response_type") == "code" && strings.Count(q.Get("state"), ".") == 2 &&
			q.Get("redirect_uri") == "https://"+p.host+"/outpost.goauthentik.io/callback?X-authentik-auth-callback=true", "redirect_uri %s", q.Get("redirect_uri"))
		s.check("the outpost's cookie ("+proxy+")", anyContains(c.raw, p.cookie()+"=", "HttpOnly", "Secure", "Path=/"), "%d Set-Cookie lines", len(c.raw))
		a, err = p.check(c, proxy)
		if err != nil {
			return err
		}
		s.check("forward-auth "+proxy+", a session that is not logged in", a.status == 302, "status %d, want 302", a.status)
		c.cookies[p.cookie()] = "made-up"
		if a, err = p.check(c, proxy); err != nil {
			return err
		}
		s.check("forward-auth "+proxy+", a cookie that nobody gave out", a.status == 302, "status %d, want 302", a.status)
	}
	a, err := p.check(s.client(), "nginx")
	if err != nil {
		return err
	}
	s.check("forward-auth nginx, anonymous", a.status == 401, "status %d, want 401", a.status)
	a, err = p.ask(s.client(), "/outpost.goauthentik.io/callback?X-authentik-auth-callback=true&code=x&state=x")
	if err != nil {
		return err
	}
	s.check("the callback without a session", a.status == 400 || a.status == 302, "status %d", a.status)
	return nil
}

// enter follows start, authorisation, flow and callback until the browser is back at the application.
func (s *suite) enter(c *client, p *protected) (hops []string, err error) {
	home := "https://" + p.host + "/app"
	portal, err := url.Parse(p.portal)
	if err != nil {
		return nil, err
	}
	a, err := p.ask(c, "/outpost.goauthentik.io/start?rd="+url.QueryEscape(home))
	for range maxHops {
		if err != nil {
			return hops, err
		}
		to := a.header.Get("Location")
		if a.status == 200 && a.str("component") == "xak-flow-redirect" {
			to = a.str("to")
		} else if a.status != 302 {
			return hops, fmt.Errorf("status %d, component %q", a.status, a.str("component"))
		}
		if to == home {
			return hops, nil
		}
		u, e := url.Parse(to)
		if e != nil {
			return hops, e
		}
		hops = append(hops, u.Path)
		if u.Host == p.host {
			a, err = p.ask(c, u.RequestURI())
			continue
		}
		path := u.RequestURI()
		if slug, ok := strings.CutPrefix(u.Path, "/if/flow/"); ok {
			path = "/api/v3/flows/executor/" + slug + "?query=" + url.QueryEscape(u.RawQuery)
		}
		a, err = c.do(http.MethodGet, path, nil, "Host", portal.Host, "X-Forwarded-Host", portal.Host, "X-Forwarded-Proto", portal.Scheme)
	}
	return hops, fmt.Errorf("not back at %s after %d hops", home, maxHops)
}

// countForwardAuth reads what checks leave in the outpost's table of sessions (facts/authentik.md §5.2): nothing with
// a session, one row without a cookie. Before 2025.10 the sessions are in Redis.
func (s *suite) countForwardAuth(p *protected, c *client) error {
	b, err := authentik.BehaviourOf(s.o.Version)
	if err != nil || b.Redis {
		return err
	}
	conn, err := pgx.Connect(s.ctx, s.o.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(s.ctx) }()
	// A row that is written anew has another xmin.
	rows := func() (n int, written string, err error) {
		err = conn.QueryRow(s.ctx, "SELECT count(*), md5(COALESCE(string_agg(session_key || xmin::text, ',' ORDER BY session_key), '')) FROM authentik_providers_proxy_proxysession").Scan(&n, &written)
		return n, written, err
	}
	stranger := s.client()
	for _, x := range []struct {
		name  string
		c     *client
		more  int
		again bool // rows may be written anew: some releases save a session that is not logged in at each check
	}{{"a check with a session", c, 0, false}, {"a check without a cookie", stranger, 1, true}, {"a check with a session that is not logged in", stranger, 0, true}} {
		before, was, err := rows()
		if err != nil {
			return err
		}
		if _, err := p.check(x.c, "traefik"); err != nil {
			return err
		}
		after, is, err := rows()
		if err != nil {
			return err
		}
		s.check("rows of the outpost's sessions after "+x.name, after-before == x.more && (x.again || was == is), "%d rows, %d expected", after-before, x.more)
	}
	return nil
}

// removeProtected takes the provider from the outpost and removes application and provider.
func (s *suite) removeProtected(admin *client, p *protected) error {
	provider := fmt.Sprintf("%s%.0f/", providers, p.pk)
	for _, x := range []struct {
		name, method, path string
		body               any
		want               int
	}{
		{"PATCH the outpost back", http.MethodPatch, outposts + p.outpost + "/", map[string]any{"providers": append([]any{}, p.others...)}, 200},
		{"DELETE application", http.MethodDelete, applications + p.name + "/", nil, 204},
		{"DELETE application again", http.MethodDelete, applications + p.name + "/", nil, 404},
		{"DELETE proxy provider", http.MethodDelete, provider, nil, 204},
		{"DELETE proxy provider again", http.MethodDelete, provider, nil, 404},
	} {
		a, err := admin.do(x.method, x.path, x.body)
		if err != nil {
			return err
		}
		s.check(x.name, a.status == x.want, "status %d, want %d", a.status, x.want)
	}
	return nil
}
