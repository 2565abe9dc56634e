package authelia

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const good = `
storage: {encryption_key: a-key-of-more-than-twenty-characters, local: {path: /x}}
authentication_backend: {file: {path: /users.yml}}
identity_validation: {reset_password: {jwt_secret: s}}
session: {cookies: [{domain: example.com, authelia_url: 'https://auth.example.com'}]}
notifier: {filesystem: {filename: /tmp/x}}
access_control: {default_policy: one_factor}
`

func load(t *testing.T, text string, env ...string) (*Config, string) {
	t.Helper()
	f := filepath.Join(t.TempDir(), "c.yml")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, errs := Load([]string{f}, env, "")
	var all []string
	for _, e := range errs {
		all = append(all, e.Error())
	}
	return c, strings.Join(all, "\n")
}

// TestValidate changes one thing of a good configuration at a time (facts/authelia.md §1.1).
func TestValidate(t *testing.T) {
	if _, errs := load(t, good); errs != "" {
		t.Fatalf("the good one: %s", errs)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":        {"storage:", "stoarge: 1\nstorage:", "configuration key not expected: stoarge"},
		"no encryption key":  {"encryption_key: a-key-of-more-than-twenty-characters, ", "", "'encryption_key' is required"},
		"short key":          {"a-key-of-more-than-twenty-characters", "short", "20 characters or longer"},
		"no storage":         {", local: {path: /x}", "", "must be provided"},
		"two storages":       {"local: {path: /x}", "local: {path: /x}, mysql: {}", "mutually exclusive"},
		"no backend":         {"{file: {path: /users.yml}}", "{}", "'file' or 'ldap'"},
		"no jwt secret":      {"{jwt_secret: s}", "{}", "'jwt_secret' is required"},
		"domain without dot": {"domain: example.com", "domain: localhost", "at least a single period"},
		"portal on http":     {"'https://auth", "'http://auth", "secure scheme"},
		"portal elsewhere":   {"auth.example.com'", "auth.example.org'", "does not share a cookie scope"},
		"no cookies":         {"{cookies: [{domain: example.com, authelia_url: 'https://auth.example.com'}]}", "{}", "'cookies' is required"},
		"redis, no secret":   {"session: {", "session: {redis: {host: r}, ", "'secret' is required"},
		"no notifier":        {"{filesystem: {filename: /tmp/x}}", "{}", "'smtp' or 'filesystem'"},
		"deny without rules": {"default_policy: one_factor", "default_policy: deny", "when no rules are specified"},
		"bypass with subject": {"default_policy: one_factor", "default_policy: deny, rules: [{domain: a.example.com, policy: bypass, subject: 'user:x'}]",
			"'bypass' is not supported when 'subject'"},
	} {
		if !strings.Contains(good, c.old) {
			t.Fatalf("%s: %q is not in the good one", name, c.old)
		}
		if _, errs := load(t, strings.Replace(good, c.old, c.new, 1)); !strings.Contains(errs, c.want) {
			t.Errorf("%s: %q, want %q", name, errs, c.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(secret, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, errs := load(t, good, "AUTHELIA_SESSION_SECRET_FILE="+secret, "AUTHELIA_LOG_LEVEL=warn", "AUTHELIA_SERVER_DISABLE_HEALTHCHECK=true", "AUTHELIA_SERVICE_HOST=10.0.0.1")
	if errs != "" || c.Session.Secret != "from-a-file" || c.Log.Level != "warn" || !c.Server.DisableHealthcheck {
		t.Errorf("%q: %+v", errs, c.Session)
	}
	if _, errs = load(t, good, "AUTHELIA_STORAGE_ENCRYPTION_KEY_FILE="+secret); !strings.Contains(errs, "already defined") {
		t.Errorf("a secret defined twice: %q", errs)
	}
}

func TestDecide(t *testing.T) {
	text := strings.Split(good, "access_control")[0] + `access_control:
  default_policy: deny
  networks: [{name: home, networks: [10.0.0.0/8]}]
  rules:
    - {domain: a.example.com, resources: ['^/api/'], methods: [GET], policy: bypass}
    - {domain: a.example.com, subject: [['user:eve', 'group:ops'], 'group:admins'], policy: two_factor}
    - {domain: '*.example.com', networks: [home], policy: one_factor}
    - {domain: deny.example.com, subject: 'user:eve', policy: deny}
`
	c, errs := load(t, text)
	if errs != "" {
		t.Fatal(errs)
	}
	for _, x := range []struct {
		name, url, method, ip, user string
		groups                      []string
		level                       int
		want                        result
	}{
		{"bypass by resource and method", "https://a.example.com/api/x", "GET", "1.1.1.1", "", nil, 0, authorized},
		{"other method: anonymous may be the subject", "https://a.example.com/api/x", "POST", "1.1.1.1", "", nil, 0, unauthorized},
		{"two factors wanted, one had", "https://a.example.com/", "GET", "1.1.1.1", "eve", []string{"ops"}, 1, unauthorized},
		{"half of a subject is none", "https://a.example.com/", "GET", "1.1.1.1", "eve", nil, 1, forbidden},
		{"network", "https://b.example.com/", "GET", "10.1.2.3", "bob", nil, 1, authorized},
		{"network, anonymous", "https://b.example.com/", "GET", "10.1.2.3", "", nil, 0, unauthorized},
		{"elsewhere: default deny", "https://b.example.com/", "GET", "1.1.1.1", "", nil, 0, forbidden},
		{"deny with subject, anonymous", "https://deny.example.com/", "GET", "1.1.1.1", "", nil, 0, unauthorized},
		{"deny with subject", "https://deny.example.com/", "GET", "1.1.1.1", "eve", nil, 1, forbidden},
	} {
		u, err := url.Parse(x.url)
		if err != nil {
			t.Fatal(err)
		}
		p, subj := c.AccessControl.required(target{u, x.method, net.ParseIP(x.ip), x.user, x.groups})
		if got := decide(p, x.level, subj); got != x.want {
			t.Errorf("%s: %v (policy %s), want %v", x.name, got, p, x.want)
		}
	}
}

// TestDelay looks at the history alone: how long a wait takes is not asserted.
func TestDelay(t *testing.T) {
	d := newDelay(3, time.Second, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range 4 {
		d.wait(ctx, time.Duration(i)*time.Millisecond, i != 1)
	}
	if d.history[0] != 0 || d.history[1] != 2*time.Millisecond || d.history[2] != 3*time.Millisecond {
		t.Errorf("history %v: failures must not count", d.history)
	}
}

func TestDigests(t *testing.T) {
	for digest, want := range map[string]bool{
		Hash("pw"): true, Hash("other"): false,
		"$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$AAAA": false,
	} {
		if got, err := verify(digest, "pw"); err != nil || got != want {
			t.Errorf("%s: %v %v", digest, got, err)
		}
	}
	if _, err := verify("plain", "plain"); err == nil {
		t.Error("a plain text password is taken for a digest")
	}
}
