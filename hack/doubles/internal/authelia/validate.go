package authelia

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

func (c *Config) defaults() {
	set := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	dur := func(p *Duration, v time.Duration) {
		if *p == 0 {
			*p = Duration(v)
		}
	}
	set(&c.Server.Address, "tcp://:9091/")
	dur(&c.Server.Timeouts.Read, 6*time.Second)
	dur(&c.Server.Timeouts.Write, 6*time.Second)
	dur(&c.Server.Timeouts.Idle, 30*time.Second)
	if c.Server.Buffers.Read == 0 {
		c.Server.Buffers.Read = 4096
	}
	set(&c.Log.Level, "info")
	set(&c.Telemetry.Metrics.Address, "tcp://:9959/metrics")
	set(&c.Session.Name, "authelia_session")
	dur(&c.Session.Expiration, time.Hour)
	dur(&c.Session.Inactivity, 5*time.Minute) // 0 falls back to this: it cannot be turned off
	dur(&c.Session.RememberMe, 730*time.Hour)
	if r := c.Session.Redis; r != nil {
		dur(&r.Timeout, 5*time.Second)
		if r.Port == 0 && !strings.HasPrefix(r.Host, "/") {
			r.Port = 6379
		}
		if r.MaxActive == 0 {
			r.MaxActive = 8
		}
	}
	if len(c.Regulation.Modes) == 0 {
		c.Regulation.Modes = []string{"user"}
	}
	dur(&c.Regulation.FindTime, 2*time.Minute)
	dur(&c.Regulation.BanTime, 5*time.Minute)
	if p := c.Storage.Postgres; p != nil {
		set(&p.Schema, "public")
		dur(&p.Timeout, 5*time.Second)
	}
	set(&c.AccessControl.DefaultPolicy, "deny")
}

// maxRetries is 3 unless set; 0 disables new bans.
func (c *Config) maxRetries() int {
	if c.Regulation.MaxRetries == nil {
		return 3
	}
	return *c.Regulation.MaxRetries
}

// validate checks what v4.39 requires at startup (§1.1).
func (c *Config) validate() (errs []error) {
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	switch k := c.Storage.EncryptionKey; {
	case k == "":
		bad("storage: option 'encryption_key' is required")
	case len(k) < 20:
		bad("storage: option 'encryption_key' must be 20 characters or longer")
	}
	n := 0
	for _, have := range []bool{c.Storage.Local != nil, c.Storage.MySQL != nil, c.Storage.Postgres != nil} {
		if have {
			n++
		}
	}
	if n == 0 {
		bad("storage: configuration for a 'local', 'mysql' or 'postgres' database must be provided")
	} else if n > 1 {
		bad("storage: option 'local', 'mysql' and 'postgres' are mutually exclusive")
	}
	if p := c.Storage.Postgres; p != nil {
		for name, v := range map[string]string{"address": p.Address, "database": p.Database, "username": p.Username, "password": p.Password} {
			if v == "" {
				bad("storage: postgres: option '%s' is required", name)
			}
		}
	}
	if c.Storage.Local != nil && c.Storage.Local.Path == "" {
		bad("storage: local: option 'path' is required")
	}
	switch {
	case c.Backend.File == nil && c.Backend.LDAP == nil:
		bad("authentication_backend: you must ensure either the 'file' or 'ldap' authentication backend is configured")
	case c.Backend.File != nil && c.Backend.LDAP != nil:
		bad("authentication_backend: please ensure only one of the 'file' or 'ldap' backend is configured")
	case c.Backend.File != nil && c.Backend.File.Path == "":
		bad("authentication_backend: file: option 'path' is required")
	}
	errs = append(errs, c.Session.validate()...)
	switch {
	case c.Notifier.Filesystem == nil && c.Notifier.SMTP == nil:
		bad("notifier: you must ensure either the 'smtp' or 'filesystem' notifier is configured")
	case c.Notifier.Filesystem != nil && c.Notifier.SMTP != nil:
		bad("notifier: please ensure only one of the 'smtp' or 'filesystem' notifier is configured")
	case c.Notifier.Filesystem != nil && c.Notifier.Filesystem.Filename == "":
		bad("notifier: filesystem: option 'filename' is required")
	}
	if !c.Backend.PasswordReset.Disable && c.IdentityValidation.ResetPassword.JWTSecret == "" {
		bad("identity_validation: reset_password: option 'jwt_secret' is required when the reset password functionality isn't disabled")
	}
	if !contains([]string{"trace", "debug", "info", "warn", "error"}, c.Log.Level) {
		bad("log: option 'level' must be one of 'trace', 'debug', 'info', 'warn', or 'error' but it's configured as '%s'", c.Log.Level)
	}
	errs = append(errs, c.IdentityProviders.OIDC.validate()...)
	return append(errs, c.AccessControl.validate()...)
}

func (s *SessionConfig) validate() (errs []error) {
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Redis != nil && s.Secret == "" {
		bad("session: option 'secret' is required when using the 'redis' provider")
	}
	if s.Redis != nil && s.Redis.Host == "" {
		bad("session: redis: option 'host' is required")
	}
	if len(s.Cookies) == 0 {
		bad("session: option 'cookies' is required")
	}
	for i := range s.Cookies {
		d := &s.Cookies[i]
		if d.Name == "" {
			d.Name = s.Name
		}
		if net.ParseIP(d.Domain) == nil && !strings.Contains(strings.Trim(d.Domain, "."), ".") {
			bad("session: domain config #%d (domain '%s'): option 'domain' is not a valid cookie domain: must have at least a single period or be an ip address", i+1, d.Domain)
		}
		u, err := url.Parse(d.AutheliaURL)
		switch {
		case err != nil || d.AutheliaURL == "" || u.Host == "":
			bad("session: domain config #%d (domain '%s'): option 'authelia_url' is required", i+1, d.Domain)
		case u.Scheme != "https":
			bad("session: domain config #%d (domain '%s'): option 'authelia_url' does not have a secure scheme with a value of '%s'", i+1, d.Domain, d.AutheliaURL)
		case u.Hostname() != d.Domain && !strings.HasSuffix(u.Hostname(), "."+d.Domain):
			bad("session: domain config #%d (domain '%s'): option 'authelia_url' does not share a cookie scope with domain '%s'", i+1, d.Domain, d.Domain)
		}
	}
	return errs
}
