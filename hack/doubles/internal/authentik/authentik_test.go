package authentik

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

func TestBehaviour(t *testing.T) {
	for version, want := range map[string]struct {
		commits, iterations int
		redis, flush        bool
	}{
		"2025.4.1":  {13, 870_000, true, true},
		"2025.8.6":  {14, 870_000, true, true},
		"2025.10.0": {24, 1_000_000, false, true},
		"2025.12.4": {24, 1_000_000, false, true},
		"2026.5.3":  {24, 1_000_000, false, true},
		"2026.5.4":  {23, 1_000_000, false, false},
		"2026.8.3":  {17, 1_000_000, false, false},
	} {
		b, err := BehaviourOf(version)
		if err != nil {
			t.Fatal(err)
		}
		if b.CommitsPerLogin() != want.commits || b.Iterations != want.iterations || b.Redis != want.redis || b.FlushOnLogin != want.flush {
			t.Errorf("%s: %+v with %d commits, want %+v", version, b, b.CommitsPerLogin(), want)
		}
	}
	for _, bad := range []string{"", "latest", "2024.12.3", "2025"} {
		if _, err := BehaviourOf(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func config(t *testing.T, env map[string]string) *Config {
	t.Helper()
	env["AUTHENTIK_SECRET_KEY"] = "k"
	c, err := LoadConfig(func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfig(t *testing.T) {
	if _, err := LoadConfig(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "Secret key missing") {
		t.Errorf("without a secret key: %v", err)
	}
	file := t.TempDir() + "/pw"
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"AUTHENTIK_POSTGRESQL__PASSWORD": "file://" + file, "AUTHENTIK_POSTGRESQL__USER": "env://DBUSER?nobody", "DBUSER": "ak",
		"AUTHENTIK_POSTGRESQL__HOST": "env://UNSET?db.example", "AUTHENTIK_POSTGRESQL__CONN_OPTIONS": base64.StdEncoding.EncodeToString([]byte(`{"keepalives_idle":10,"options":"-c synchronous_commit=off"}`)),
		"AUTHENTIK_POSTGRESQL__DIRECT__HOST": "direct.example", "AUTHENTIK_DOUBLE_VERSION": "2026.8.3"}
	c := config(t, env)
	want := "postgres://ak:from-file@db.example:5432/authentik?application_name=authentik&options=-c+synchronous_commit%3Doff&sslmode=disable"
	if got := c.DSN(false); got != want {
		t.Errorf("DSN %s, want %s", got, want)
	}
	if got := c.DSN(true); !strings.Contains(got, "@direct.example:") {
		t.Errorf("direct DSN %s", got)
	}
	if c.HTTP != "[::]:9000" {
		t.Errorf("listens on %s", c.HTTP)
	}
	// A rotated file counts at the next connection.
	if err := os.WriteFile(file, []byte("rotated"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.DSN(false); !strings.Contains(got, ":rotated@") {
		t.Errorf("DSN after rotation %s", got)
	}
	if strings.Contains(c.Dump(), "rotated") {
		t.Error("dump_config shows the password")
	}
}

// TestPassword checks against a digest made by Django's PBKDF2PasswordHasher algorithm with known input.
func TestPassword(t *testing.T) {
	b := Behaviour{Iterations: 1000}
	// hashlib.pbkdf2_hmac("sha256", b"password", b"seasalt", 1000)
	const known = "pbkdf2_sha256$1000$seasalt$YIWkt6M1JFXrHg5s0jZjBSc7C2Cz6QvchSJ0h8Y+i7c="
	if enc := b.MakePassword("pw"); !b.CheckPassword("pw", enc) || b.CheckPassword("pW", enc) || !strings.HasPrefix(enc, "pbkdf2_sha256$1000$") {
		t.Errorf("round trip of %s", enc)
	}
	if got := "pbkdf2_sha256$1000$seasalt$" + pbkdf2sha256("password", "seasalt", 1000); got != known {
		t.Errorf("got %s, want %s", got, known)
	}
	if b.CheckPassword("pw", "!unusable") || b.CheckPassword("pw", "") {
		t.Error("an unusable password passes")
	}
}
