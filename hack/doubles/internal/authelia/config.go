// Package authelia is the stand-in for Authelia v4.39. What it imitates, and what not, stands in the README of this
// module; the section numbers in the comments are those of facts/authelia.md.
package authelia

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"text/template"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is the part of Authelia's configuration that the double heeds.
type Config struct {
	Server struct {
		Address            string `yaml:"address"`
		DisableHealthcheck bool   `yaml:"disable_healthcheck"`
		Timeouts           struct {
			Read, Write, Idle Duration
		} `yaml:"timeouts"`
		Buffers struct {
			Read int `yaml:"read"`
		} `yaml:"buffers"`
		Endpoints struct {
			Authz map[string]struct {
				Implementation string `yaml:"implementation"`
				Strategies     []struct {
					Name string `yaml:"name"`
				} `yaml:"authn_strategies"`
			} `yaml:"authz"`
		} `yaml:"endpoints"`
	} `yaml:"server"`
	Log struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`
	} `yaml:"log"`
	Telemetry struct {
		Metrics struct {
			Enabled bool   `yaml:"enabled"`
			Address string `yaml:"address"`
		} `yaml:"metrics"`
	} `yaml:"telemetry"`
	IdentityValidation struct {
		ResetPassword struct {
			JWTSecret string `yaml:"jwt_secret"`
		} `yaml:"reset_password"`
	} `yaml:"identity_validation"`
	Backend struct {
		PasswordReset struct {
			Disable bool `yaml:"disable"`
		} `yaml:"password_reset"`
		File *struct {
			Path string `yaml:"path"`
		} `yaml:"file"`
		LDAP *yaml.Node `yaml:"ldap"`
	} `yaml:"authentication_backend"`
	Session    SessionConfig `yaml:"session"`
	Regulation struct {
		Modes      []string `yaml:"modes"`
		MaxRetries *int     `yaml:"max_retries"`
		FindTime   Duration `yaml:"find_time"`
		BanTime    Duration `yaml:"ban_time"`
	} `yaml:"regulation"`
	Storage struct {
		EncryptionKey string `yaml:"encryption_key"`
		Local         *struct {
			Path string `yaml:"path"`
		} `yaml:"local"`
		MySQL    *yaml.Node      `yaml:"mysql"`
		Postgres *PostgresConfig `yaml:"postgres"`
	} `yaml:"storage"`
	Notifier struct {
		Filesystem *struct {
			Filename string `yaml:"filename"`
		} `yaml:"filesystem"`
		SMTP *yaml.Node `yaml:"smtp"`
	} `yaml:"notifier"`
	AccessControl     ACLConfig `yaml:"access_control"`
	IdentityProviders struct {
		OIDC *OIDCConfig `yaml:"oidc"`
	} `yaml:"identity_providers"`
}

// SessionConfig is session.*.
type SessionConfig struct {
	Name       string         `yaml:"name"`
	SameSite   string         `yaml:"same_site"`
	Secret     string         `yaml:"secret"`
	Expiration Duration       `yaml:"expiration"`
	Inactivity Duration       `yaml:"inactivity"`
	RememberMe Duration       `yaml:"remember_me"`
	Cookies    []CookieConfig `yaml:"cookies"`
	Redis      *RedisConfig   `yaml:"redis"`
}

// CookieConfig is one protected domain.
type CookieConfig struct {
	Domain      string `yaml:"domain"`
	AutheliaURL string `yaml:"authelia_url"`
	DefaultURL  string `yaml:"default_redirection_url"`
	Name        string `yaml:"name"`
}

// RedisConfig is session.redis; a host that is a path is a unix socket, with port 0.
type RedisConfig struct {
	Host      string   `yaml:"host"`
	Port      int      `yaml:"port"`
	Timeout   Duration `yaml:"timeout"`
	Username  string   `yaml:"username"`
	Password  string   `yaml:"password"`
	DB        int      `yaml:"database_index"`
	MaxActive int      `yaml:"maximum_active_connections"`
	TLS       *struct {
		ServerName string `yaml:"server_name"`
		SkipVerify bool   `yaml:"skip_verify"`
	} `yaml:"tls"`
}

// PostgresConfig is storage.postgres.
type PostgresConfig struct {
	Address  string   `yaml:"address"`
	Database string   `yaml:"database"`
	Schema   string   `yaml:"schema"`
	Username string   `yaml:"username"`
	Password string   `yaml:"password"`
	Timeout  Duration `yaml:"timeout"`
	TLS      *struct {
		SkipVerify bool   `yaml:"skip_verify"`
		ServerName string `yaml:"server_name"`
	} `yaml:"tls"`
}

// Duration reads Authelia's durations: 1h, 5m, 1M, 30 (seconds), and combinations.
type Duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := parseDuration(n.Value)
	*d = Duration(v)
	return err
}

func parseDuration(s string) (time.Duration, error) {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	units := map[string]time.Duration{"y": 8760 * time.Hour, "M": 730 * time.Hour, "w": 168 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond}
	var total time.Duration
	rest := strings.ReplaceAll(s, " ", "")
	for rest != "" {
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		j := i
		for j < len(rest) && (rest[j] < '0' || rest[j] > '9') {
			j++
		}
		n, err := strconv.Atoi(rest[:i])
		u, ok := units[rest[i:j]]
		if err != nil || !ok {
			return 0, fmt.Errorf("could not parse '%s' as a duration", s)
		}
		total += time.Duration(n) * u
		rest = rest[j:]
	}
	return total, nil
}

// topLevel are the keys that v4.39 knows at the top; any other is a startup error.
var topLevel = []string{"theme", "certificates_directory", "default_2fa_method", "default_redirection_url", "jwt_secret", "server", "log", "telemetry", "totp", "duo_api", "webauthn", "identity_validation",
	"authentication_backend", "session", "regulation", "storage", "notifier", "access_control", "ntp", "password_policy", "privacy_policy", "identity_providers", "definitions"}

// envKeys are the scalars that may come from the environment, as AUTHELIA_<PATH> or, for secrets, AUTHELIA_<PATH>_FILE
// (§1.9). Lists cannot.
var envKeys = []string{"server.address", "server.disable_healthcheck", "log.level", "log.format", "telemetry.metrics.enabled", "telemetry.metrics.address", "identity_validation.reset_password.jwt_secret",
	"authentication_backend.password_reset.disable", "authentication_backend.file.path", "session.name", "session.same_site", "session.secret", "session.expiration", "session.inactivity", "session.remember_me",
	"session.redis.host", "session.redis.port", "session.redis.username", "session.redis.password", "session.redis.database_index", "session.redis.maximum_active_connections", "session.redis.timeout",
	"regulation.max_retries", "regulation.find_time", "regulation.ban_time", "storage.encryption_key", "storage.local.path", "storage.postgres.address", "storage.postgres.database", "storage.postgres.schema",
	"storage.postgres.username", "storage.postgres.password", "storage.postgres.timeout", "notifier.filesystem.filename", "access_control.default_policy", "identity_providers.oidc.hmac_secret"}

// Load reads files, then environment. The errors are all that is wrong, as the product reports them together.
func Load(files []string, environ []string, filters string) (*Config, []error) {
	var errs []error
	tree := map[string]any{}
	for _, f := range expand(files) {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, []error{fmt.Errorf("failed to load configuration from file path(%s) source: %w", f, err)}
		}
		if strings.Contains(filters, "template") {
			if raw, err = render(raw); err != nil {
				return nil, []error{err}
			}
		}
		part := map[string]any{}
		if err := yaml.Unmarshal(raw, &part); err != nil {
			return nil, []error{fmt.Errorf("failed to load configuration from file path(%s) source: %w", f, err)}
		}
		merge(tree, part)
	}
	for k := range tree {
		if !contains(topLevel, k) {
			errs = append(errs, fmt.Errorf("configuration key not expected: %s", k))
		}
	}
	errs = append(errs, fromEnv(tree, environ)...)
	c := &Config{}
	raw, err := yaml.Marshal(tree)
	if err == nil {
		err = yaml.Unmarshal(raw, c)
	}
	if err != nil {
		return nil, append(errs, err)
	}
	c.defaults()
	errs = append(errs, c.validate()...)
	return c, errs
}

// expand turns directories into their YAML files, in order.
func expand(files []string) (out []string) {
	for _, f := range files {
		if st, err := os.Stat(f); err == nil && st.IsDir() {
			for _, pattern := range []string{"*.yml", "*.yaml"} {
				list, _ := filepath.Glob(filepath.Join(f, pattern))
				out = append(out, list...)
			}
			continue
		}
		out = append(out, f)
	}
	return out
}

// merge lays b over a; a later file wins, and lists are replaced whole.
func merge(a, b map[string]any) {
	for k, v := range b {
		if bm, ok := v.(map[string]any); ok {
			if am, ok := a[k].(map[string]any); ok {
				merge(am, bm)
				continue
			}
		}
		a[k] = v
	}
}

func fromEnv(tree map[string]any, environ []string) (errs []error) {
	known := map[string]string{}
	for _, k := range envKeys {
		known["AUTHELIA_"+strings.ToUpper(strings.ReplaceAll(k, ".", "_"))] = k
	}
	sort.Strings(environ)
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		key, ok := known[name]
		if !ok {
			base, file := strings.CutSuffix(name, "_FILE")
			if key, ok = known[base]; !ok || !file || !isSecret(key) {
				continue
			}
			raw, err := os.ReadFile(value)
			if err != nil {
				errs = append(errs, fmt.Errorf("secrets: error loading secret path %s into key '%s': %w", value, key, err))
				continue
			}
			value = strings.TrimRight(string(raw), "\n")
		}
		at := tree
		parts := strings.Split(key, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := at[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[p] = next
			}
			at = next
		}
		last := parts[len(parts)-1]
		if old, ok := at[last]; ok && old != nil && isSecret(key) {
			errs = append(errs, fmt.Errorf("secrets: error loading secret into key '%s': it's already defined in other configuration sources", key))
			continue
		}
		var typed any = value
		if b, err := strconv.ParseBool(value); err == nil && (value == "true" || value == "false") {
			typed = b
		} else if n, err := strconv.Atoi(value); err == nil && !isSecret(key) {
			typed = n
		}
		at[last] = typed
	}
	return errs
}

func isSecret(key string) bool {
	for _, s := range []string{"key", "secret", "password", "token", "certificate_chain"} {
		if strings.HasSuffix(key, s) {
			return true
		}
	}
	return false
}

// render applies the template filter with the functions that configurations commonly use.
func render(raw []byte) ([]byte, error) {
	read := func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return string(b), err
	}
	indent := func(n int, s string) string {
		return strings.Repeat(" ", n) + strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n))
	}
	t, err := template.New("config").Funcs(template.FuncMap{
		"env": os.Getenv, "fileContent": read, "trim": strings.TrimSpace, "quote": strconv.Quote, "indent": indent,
		"secret":  func(path string) (string, error) { s, err := read(path); return strings.TrimRight(s, "\n"), err },
		"nindent": func(n int, s string) string { return "\n" + indent(n, s) },
		"squote":  func(s string) string { return "'" + s + "'" },
		"msquote": func(s string) string { return "'" + s + "'" },
	}).Parse(string(raw))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, nil)
	return b.Bytes(), err
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
