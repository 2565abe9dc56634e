// Package conformance checks over HTTP that something behaves like authentik or Authelia as far as AuthStack uses
// them. The same suite runs against double and real image alike. Where a PostgreSQL DSN is given it also counts what
// a login writes, against the figures of facts/authentik-measured.md §2.
package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

// Options say what to check and with which credentials.
type Options struct {
	Product string // authentik or authelia
	URL     string // base URL, such as http://127.0.0.1:9000
	Version string // of the product; empty asks the product (authentik) or takes 4.39
	Token   string // authentik: an admin API token

	DSN           string // optional: the product's database, as a user that may read pg_stat_*
	WorkerStopped bool   // authentik: no worker runs, so that commits and statements can be counted exactly
	Logins        int    // how many logins are counted; 0 is 5

	// Counted gets what each request of a login wrote; nil counts none of it. It needs the DSN and the worker stopped.
	Counted func([]RequestCount)

	Username, Password string // Authelia: a user of the users file
	Portal             string // Authelia: the portal's host, such as auth.example.com
	OneFactor          string // Authelia: a host that one_factor protects
	Bypass             string // Authelia: a host with a bypass rule; optional
	Denied             string // Authelia: a host whose rule is deny; optional

	// Authelia: a client of OpenID Connect with implicit consent, as its configuration has it; optional.
	ClientID, ClientSecret, RedirectURI string
}

// A Check is one line of the result.
type Check struct {
	Name   string
	OK     bool
	Detail string
}

// suite collects checks.
type suite struct {
	o      Options
	ctx    context.Context
	checks []Check
}

func (s *suite) check(name string, ok bool, format string, a ...any) bool {
	s.checks = append(s.checks, Check{name, ok, fmt.Sprintf(format, a...)})
	return ok
}

// Run runs the suite of the product.
func Run(ctx context.Context, o Options) ([]Check, error) {
	if o.Logins == 0 {
		o.Logins = 5
	}
	o.URL = strings.TrimRight(o.URL, "/")
	s := &suite{o: o, ctx: ctx}
	switch o.Product {
	case "authentik":
		err := s.authentik()
		return s.checks, err
	case "authelia":
		err := s.authelia()
		return s.checks, err
	}
	return nil, fmt.Errorf("product %q: want authentik or authelia", o.Product)
}

// Failed tells whether any check failed.
func Failed(checks []Check) bool {
	for _, c := range checks {
		if !c.OK {
			return true
		}
	}
	return false
}

// Print writes the table of checks.
func Print(w io.Writer, checks []Check) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	failed := 0
	for _, c := range checks {
		mark := "pass"
		if !c.OK {
			mark = "FAIL"
			failed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "%d checks, %d failed\n", len(checks), failed)
}

// client is a browser without a screen: it keeps cookies by hand, because Secure cookies have to be sent over plain
// HTTP here and Authelia's alphabet is wider than net/http's parser allows. It never follows a redirect.
type client struct {
	s       *suite
	cookies map[string]string
	header  http.Header
	raw     []string // Set-Cookie lines of the last answer
}

func (s *suite) client() *client {
	return &client{s: s, cookies: map[string]string{}, header: http.Header{"Accept": {"application/json"}}}
}

var transport = &http.Client{Timeout: 60 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// answer is a response with its body read.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	took   time.Duration
	// path is what was asked for.
	path string
}

func (a *answer) str(key string) string {
	v, _ := a.body[key].(string)
	return v
}

func (c *client) do(method, path string, body any, header ...string) (*answer, error) {
	var rd io.Reader
	form, isForm := body.(url.Values)
	if isForm {
		rd = strings.NewReader(form.Encode())
	} else if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		rd = strings.NewReader(string(raw))
	}
	req, err := http.NewRequestWithContext(c.s.ctx, method, c.s.o.URL+path, rd)
	if err != nil {
		return nil, err
	}
	for k, v := range c.header {
		req.Header[k] = v
	}
	if isForm {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	var jar []string
	for k, v := range c.cookies {
		jar = append(jar, k+"="+v)
	}
	if len(jar) > 0 {
		req.Header.Set("Cookie", strings.Join(jar, "; "))
	}
	start := time.Now()
	res, err := transport.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return nil, err
	}
	out := &answer{status: res.StatusCode, header: res.Header, took: time.Since(start), path: path}
	_ = json.Unmarshal(raw, &out.body)
	c.raw = res.Header.Values("Set-Cookie")
	for _, line := range c.raw {
		pair, _, _ := strings.Cut(line, ";")
		if k, v, ok := strings.Cut(pair, "="); ok {
			if v == "" {
				delete(c.cookies, k)
			} else {
				c.cookies[k] = v
			}
		}
	}
	return out, nil
}
