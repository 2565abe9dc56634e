package authelia

import (
	"cmp"
	"fmt"
	"net/mail"
	"strings"

	"go.yaml.in/yaml/v3"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// Mounts of the Pod.
const (
	configMount = "/etc/authelia"
	secretMount = "/run/secrets/authelia"
	usersMount  = "/run/authelia/users"
	stateMount  = "/var/lib/authelia"
	usersKey    = "users_database.yml"
	configKey   = "configuration.yml"
)

// section of the configuration.
type section = map[string]any

// configuration that Authelia reads first. Only keys that exist in the release are written, since
// Authelia refuses unknown ones; secrets come as files by environment variables (facts/authelia.md 1.9).
// extraSMTP is whether an extra file brings the mail server.
func configuration(st *v1alpha1.AuthStack, r release, database part.Database, redis *part.Redis, latency latencyAccess, extraSMTP bool) (string, error) {
	host := st.Spec.Host
	config := section{
		"theme": "auto",
		// At info each unauthorised request writes a line, which costs a quarter of the throughput (8).
		"log": section{"level": "warn", "format": "json"},
		"server": section{
			"address": "tcp://:9091/",
			// It writes into the image's file system, which is read-only; the kubelet asks over HTTP (1.1).
			"disable_healthcheck": true,
			// Cookies and forwarded headers of a large site do not fit into 4096 bytes (431).
			"buffers": section{"read": 16384, "write": 16384},
			// Above the 60 s that proxies keep an idle connection, so that the proxy closes first (1.2).
			"timeouts":  section{"read": "6s", "write": "6s", "idle": "90s"},
			"endpoints": section{"authz": authzEndpoints()},
		},
		"telemetry":              section{"metrics": section{"enabled": true, "address": "tcp://:9959/metrics"}},
		"totp":                   section{"issuer": host},
		"ntp":                    section{"disable_startup_check": true},
		"authentication_backend": backend(st, r),
		"access_control":         access(st.Spec.Authelia.AccessControl, host, latency),
		"regulation":             section{"max_retries": 3, "find_time": "2m", "ban_time": "5m"},
		"session": section{
			"name":    "authelia_session",
			"cookies": []any{section{"domain": CookieDomain(host), "authelia_url": "https://" + host}},
		},
		"storage":  section{"postgres": postgres(database)},
		"notifier": notifier(st.Spec.Authelia.SMTP, extraSMTP),
	}
	if redis != nil {
		config["session"].(section)["redis"] = section{
			// By address: Authelia opens a connection for nearly every command, and each would ask DNS anew (1.5).
			"host": redisHost(redis.IP),
			"port": redis.Port,
			// With the default of 8 a burst waits for the pool, and a valid session counts as anonymous (8548).
			"maximum_active_connections": 64,
			// Idle connections are thrown away by a unit error upstream; keeping some dials more, not less.
			"minimum_idle_connections": 0,
		}
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("rendering Authelia's configuration: %w", err)
	}
	return "# Rendered by authstack; changes are overwritten. Use spec.authelia.extraConfig.\n" + string(out), nil
}

// notifier that mail goes out by. Without a mail server it is a file, since Authelia does not start
// without one. A mail server that does not answer must not keep people from logging in, so it is not
// asked at the start (1.1).
func notifier(smtp *v1alpha1.AutheliaSMTP, extraSMTP bool) section {
	out := section{"disable_startup_check": true}
	switch {
	case smtp != nil:
		server := section{"address": smtp.Address, "sender": smtp.Sender}
		if smtp.Username != "" {
			server["username"] = smtp.Username
		}
		out["smtp"] = server
	case !extraSMTP:
		out["filesystem"] = section{"filename": stateMount + "/notification.txt"}
	}
	return out
}

// checkSMTP says what is the matter with spec.authelia.smtp.
func checkSMTP(in part.Input) part.State {
	smtp := in.Stack.Spec.Authelia.SMTP
	if smtp == nil {
		return part.Ready("")
	}
	if _, err := mail.ParseAddress(smtp.Sender); err != nil {
		return part.Stalled(v1alpha1.ReasonInvalidSpec, "spec.authelia.smtp.sender is no mail address; write for example Authelia <authelia@example.com>")
	}
	if ref := smtp.PasswordSecretRef; ref != nil {
		return part.RequireSecret(in, "spec.authelia.smtp.passwordSecretRef", ref.Name, ref.Key)
	}
	return part.Ready("")
}

// redisHost in brackets where it is an IPv6 address: Authelia puts ":" and the port behind it as it is
// (internal/session/provider_config.go).
func redisHost(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

// authzEndpoints for the three families of proxies, with the cookie alone: the default also takes
// Basic credentials, by which anybody could have passwords hashed through a protected URL (1.2).
func authzEndpoints() section {
	endpoints := section{}
	for name, implementation := range map[string]string{
		"forward-auth": "ForwardAuth", "auth-request": "AuthRequest", "ext-authz": "ExtAuthz",
	} {
		endpoints[name] = section{
			"implementation":   implementation,
			"authn_strategies": []any{section{"name": "CookieSession"}},
		}
	}
	return endpoints
}

func backend(st *v1alpha1.AuthStack, r release) section {
	out := section{"password_reset": section{"disable": true}}
	if r.passwordChange {
		out["password_change"] = section{"disable": true}
	}
	ldap := st.Spec.Authelia.LDAP
	if ldap == nil {
		out["file"] = section{"path": usersMount + "/" + usersKey}
		return out
	}
	directory := section{
		"address":        ldap.Address,
		"implementation": cmp.Or(ldap.Implementation, "custom"),
		"base_dn":        ldap.BaseDN,
		"user":           ldap.User,
	}
	if directory["implementation"] == "custom" {
		// The custom implementation has no filters of its own and insists on some
		// (internal/configuration/validator/authentication.go); these fit OpenLDAP's schema.
		directory["users_filter"] = "(&({username_attribute}={input})(objectClass=person))"
		directory["groups_filter"] = "(&(member={dn})(objectClass=groupOfNames))"
		directory["attributes"] = section{"username": "uid", "display_name": "displayName", "mail": "mail", "group_name": "cn"}
	}
	out["ldap"] = directory
	return out
}

func postgres(database part.Database) section {
	out := section{
		"address":  fmt.Sprintf("tcp://%s:%d", database.ProductHost, database.Target.Port),
		"database": database.Target.Database,
		"username": database.Target.User,
		"timeout":  "5s",
	}
	if database.Target.SSLMode == "require" {
		// Encrypted without proof of identity, which is what sslmode=require means: Spilo's certificate is
		// signed by itself (facts/postgres-ceph.md B3).
		out["tls"] = section{"skip_verify": true, "minimum_version": "TLS1.2"}
	}
	return out
}
