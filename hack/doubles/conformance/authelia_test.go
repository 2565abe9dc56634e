package conformance_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"authstack.dev/authstack/hack/doubles/conformance"
	"authstack.dev/authstack/hack/doubles/internal/resp"
	"authstack.dev/authstack/hack/doubles/internal/testenv"
)

const autheliaConfig = `
server: {address: 'tcp://127.0.0.1:%d/', disable_healthcheck: true}
log: {level: info}
authentication_backend:
  password_reset: {disable: true}
  file: {path: %s/users.yml}
access_control:
  default_policy: deny
  rules:
    - {domain: open.example.com, policy: bypass}
    - {domain: '*.example.com', subject: 'group:admins', policy: one_factor, resources: ['^/never$']}
    - {domain: [app.example.com], subject: ['user:john', 'group:dev'], policy: one_factor}
session:
  cookies:
    - {domain: example.com, authelia_url: 'https://auth.example.com'}
%s
regulation: {max_retries: 3}
storage:
%s
notifier: {filesystem: {filename: %s/mail.txt}}
identity_providers:
  oidc:
    hmac_secret: a-secret-of-the-test
    jwks:
      - key: |
%s
    clients:
      - client_id: latency
        client_secret: '%s'
        redirect_uris: ['https://latency.example.com/callback']
        scopes: [openid, profile, email, offline_access]
        grant_types: [authorization_code, refresh_token]
        authorization_policy: one_factor
        consent_mode: implicit
`

// startAuthelia writes a configuration and starts the double on it.
func startAuthelia(t *testing.T, session, storage string) (string, *testenv.Proc) {
	t.Helper()
	bin := testenv.Build(t, "authelia")
	dir := t.TempDir()
	out, err := exec.Command(bin, "crypto", "hash", "generate", "argon2", "--password", "secret").Output()
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.TrimSpace(strings.TrimPrefix(string(out), "Digest: "))
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	write("users.yml", "users:\n  john:\n    displayname: John Doe\n    password: '"+digest+"'\n    email: john@example.com\n    groups: [dev]\n")
	port := testenv.FreePort(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	conf := write("configuration.yml", fmt.Sprintf(autheliaConfig, port, dir, session, storage, dir, "          "+strings.ReplaceAll(text, "\n", "\n          "), digest))
	env := []string{"X_AUTHELIA_CONFIG=" + conf, "AUTHELIA_STORAGE_ENCRYPTION_KEY_FILE=" + write("key", "a-key-of-more-than-twenty-characters\n")}
	check := exec.Command(bin, "config", "validate")
	check.Env = env
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("config validate: %s", out)
	}
	p := testenv.Start(t, bin, nil, env)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	testenv.Until(t, "authelia", testenv.Answers(url+"/api/health", 200))
	return url, p
}

func TestAuthelia(t *testing.T) {
	pg := testenv.StartPostgres(t)
	redis := testenv.StartRedis(t)
	o := conformance.Options{Product: "authelia", Username: "john", Password: "secret", Portal: "auth.example.com", OneFactor: "app.example.com", Bypass: "open.example.com", Denied: "else.example.com",
		ClientID: "latency", ClientSecret: "secret", RedirectURI: "https://latency.example.com/callback"}
	postgres := fmt.Sprintf("  postgres: {address: 'tcp://127.0.0.1:%d', database: authelia, username: postgres, password: x}", pg.Port)

	t.Run("memory", func(t *testing.T) {
		o := o
		o.URL, _ = startAuthelia(t, "", "  local: {path: /nowhere/db.sqlite3}")
		run(t, o)
	})
	t.Run("redis and postgres", func(t *testing.T) {
		o := o
		o.DSN = createDatabase(t, pg, "authelia")
		var p *testenv.Proc
		o.URL, p = startAuthelia(t, fmt.Sprintf("  secret: not-a-secret\n  redis: {host: 127.0.0.1, port: %d}", redis), postgres)
		run(t, o)
		if n := strings.Count(p.Log.String(), "is not authorized to user"); n < 4 {
			t.Errorf("%d lines for unauthorised requests at level info, want one each", n)
		}
		redisCost(t, o, redis)
	})
}

// redisCost counts commands and connections of single requests: a new connection for every command (facts/authelia.md
// §1.5).
func redisCost(t *testing.T, o conformance.Options, port int) {
	conn, err := resp.Dial(context.Background(), resp.Options{Network: "tcp", Addr: fmt.Sprintf("127.0.0.1:%d", port)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read := func() (connections int, calls map[string]int) {
		v, err := conn.Do("INFO", "everything")
		if err != nil {
			t.Fatal(err)
		}
		calls = map[string]int{}
		for _, m := range regexp.MustCompile(`(?m)^cmdstat_(get|set|exists|rename|expire|del):calls=(\d+)`).FindAllStringSubmatch(v.(string), -1) {
			calls[m[1]], _ = strconv.Atoi(m[2])
		}
		m := regexp.MustCompile(`total_connections_received:(\d+)`).FindStringSubmatch(v.(string))
		connections, _ = strconv.Atoi(m[1])
		return connections, calls
	}
	cookie := ""
	for _, c := range []struct {
		name  string
		f     func() error
		want  map[string]int
		total int
	}{
		{"a login", func() (err error) { cookie, err = conformance.AutheliaLogin(context.Background(), o); return err }, map[string]int{"set": 2, "exists": 1, "rename": 1, "expire": 1, "get": 1}, 6},
		{"a check with a session", func() error { return conformance.AutheliaCheck(context.Background(), o, cookie) }, map[string]int{"get": 2, "set": 1}, 3},
		{"a check without a cookie", func() error { return conformance.AutheliaCheck(context.Background(), o, "") }, map[string]int{"set": 1}, 1},
	} {
		conns, before := read()
		if err := c.f(); err != nil {
			t.Fatal(err)
		}
		conns2, after := read()
		if conns2-conns != c.total {
			t.Errorf("%s: %d Redis connections, want %d", c.name, conns2-conns, c.total)
		}
		for _, cmd := range []string{"get", "set", "exists", "rename", "expire", "del"} {
			if got := after[cmd] - before[cmd]; got != c.want[cmd] {
				t.Errorf("%s: %d × %s, want %d", c.name, got, cmd, c.want[cmd])
			}
		}
	}
}
