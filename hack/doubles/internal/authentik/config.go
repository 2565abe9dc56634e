// Package authentik is the stand-in for authentik's server and worker. What it imitates, and what not, stands in the
// README of this module; the counts are those of facts/authentik-measured.md §2.
package authentik

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Config is the part of authentik's environment that the double heeds.
type Config struct {
	Behaviour
	SecretKey string
	HTTP      string
	Metrics   string
	LogLevel  string
	Threads   int
	Apps      int // AUTHENTIK_DOUBLE_APPLICATIONS: how many applications the first start makes
	Slower    int // AUTHENTIK_DOUBLE_SLOWER: by how many per cent each answer takes longer

	BootstrapPassword, BootstrapToken, BootstrapEmail string
	BlueprintsDir                                     string
	redisHost, redisPort, redisPassword, redisDB      string
	getenv                                            func(string) string
}

// LoadConfig reads the environment; it fails as the product's start-up does.
func LoadConfig(getenv func(string) string) (*Config, error) {
	c := &Config{getenv: getenv}
	v := getenv("AUTHENTIK_DOUBLE_VERSION")
	if v == "" {
		v = DefaultVersion
	}
	var err error
	if c.Behaviour, err = BehaviourOf(v); err != nil {
		return nil, err
	}
	if c.SecretKey = c.get("SECRET_KEY", ""); c.SecretKey == "" {
		return nil, errors.New("Secret key missing, check https://goauthentik.io/docs/installation/")
	}
	host := "0.0.0.0"
	if c.ListenAny6 {
		host = "[::]"
	}
	c.HTTP = c.get("LISTEN__HTTP", host+":9000")
	c.Metrics = c.get("LISTEN__METRICS", host+":9300")
	c.LogLevel = c.get("LOG_LEVEL", "info")
	c.Threads = c.num("WORKER__THREADS", c.num("WORKER__CONCURRENCY", 2))
	c.Apps = c.num("DOUBLE_APPLICATIONS", 8)
	c.Slower = c.num("DOUBLE_SLOWER", 0)
	// The bootstrap values are plain: the product does not read file:// here (facts/authentik.md §4).
	c.BootstrapPassword = getenv("AUTHENTIK_BOOTSTRAP_PASSWORD")
	c.BootstrapToken = getenv("AUTHENTIK_BOOTSTRAP_TOKEN")
	c.BootstrapEmail = getenv("AUTHENTIK_BOOTSTRAP_EMAIL")
	if c.BootstrapEmail == "" {
		c.BootstrapEmail = "root@example.com"
	}
	c.BlueprintsDir = c.get("BLUEPRINTS_DIR", "/blueprints")
	c.redisHost, c.redisPort = c.get("REDIS__HOST", "localhost"), c.get("REDIS__PORT", "6379")
	c.redisPassword, c.redisDB = c.get("REDIS__PASSWORD", ""), c.get("REDIS__DB", "0")
	return c, nil
}

// get reads AUTHENTIK_<key> and resolves env://NAME?default and file:///path?default.
func (c *Config) get(key, def string) string {
	raw := c.getenv("AUTHENTIK_" + key)
	if raw == "" {
		return def
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	switch u.Scheme {
	case "env":
		if v := c.getenv(u.Host); v != "" {
			return v
		}
		return u.RawQuery
	case "file":
		b, err := os.ReadFile(u.Path)
		if err != nil {
			return u.RawQuery
		}
		return strings.TrimSpace(string(b))
	}
	return raw
}

func (c *Config) num(key string, def int) int {
	if n, err := strconv.Atoi(c.get(key, "")); err == nil {
		return n
	}
	return def
}

// RedisAddr is where Redis is, for the versions that need it.
func (c *Config) RedisAddr() string { return net.JoinHostPort(c.redisHost, c.redisPort) }

// DSN is built anew for each connection: the product reads HOST, PORT, USER and PASSWORD at each one, so that a
// rotated mounted file works without a restart (facts/authentik.md §2.1). direct asks for the way round a pooler that
// LISTEN and locks take from 2026.8 (POSTGRESQL__DIRECT__*); each key falls back to the primary's.
func (c *Config) DSN(direct bool) string {
	get := func(key, def string) string {
		if direct && c.Direct {
			if v := c.get("POSTGRESQL__DIRECT__"+key, ""); v != "" {
				return v
			}
		}
		return c.get("POSTGRESQL__"+key, def)
	}
	q := url.Values{}
	q.Set("sslmode", get("SSLMODE", "disable"))
	for env, key := range map[string]string{"SSLROOTCERT": "sslrootcert", "SSLCERT": "sslcert", "SSLKEY": "sslkey"} {
		if v := get(env, ""); v != "" {
			q.Set(key, v)
		}
	}
	q.Set("application_name", "authentik")
	for k, v := range connOptions(get("CONN_OPTIONS", "")) {
		q.Set(k, v)
	}
	host, port := get("HOST", "localhost"), get("PORT", "5432")
	u := url.URL{Scheme: "postgres", Path: "/" + get("NAME", "authentik"),
		User: url.UserPassword(get("USER", "authentik"), get("PASSWORD", c.getenv("POSTGRES_PASSWORD")))}
	if strings.HasPrefix(host, "/") {
		q.Set("host", host)
		q.Set("port", port)
	} else {
		u.Host = net.JoinHostPort(host, port)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// connOptions decodes CONN_OPTIONS: base64 of JSON with libpq keywords. Those of the socket have no counterpart here.
func connOptions(raw string) map[string]string {
	out := map[string]string{}
	b, err := base64.StdEncoding.DecodeString(raw)
	if err != nil || raw == "" {
		return out
	}
	var kv map[string]any
	if json.Unmarshal(b, &kv) != nil {
		return out
	}
	for k, v := range kv {
		if !strings.HasPrefix(k, "keepalives") && !strings.HasPrefix(k, "tcp_") {
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}

// Dump is what dump_config prints: no secret in it.
func (c *Config) Dump() string {
	return fmt.Sprintf(`{"double":true,"version":%q,"listen":{"http":%q,"metrics":%q},"log_level":%q,"worker":{"threads":%d}}`,
		c.Version, c.HTTP, c.Metrics, c.LogLevel, c.Threads)
}
