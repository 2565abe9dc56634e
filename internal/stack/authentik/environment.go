package authentik

import (
	corev1 "k8s.io/api/core/v1"

	"authstack.dev/authstack/internal/stack/part"
)

// environment of a server or worker: every setting that differs from the release's default, and why.
func (p planner) environment(mode string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		part.EnvFrom("AUTHENTIK_SECRET_KEY", SecretName(p.st), "secret-key"),
		// The short name: within the namespace it resolves with one question, and every request of
		// authentik opens a connection of its own (facts/authentik.md 2.3).
		part.EnvVar("AUTHENTIK_POSTGRESQL__HOST", p.database.ProductHost),
		part.EnvVar("AUTHENTIK_POSTGRESQL__PORT", part.Itoa(p.database.Target.Port)),
		part.EnvVar("AUTHENTIK_POSTGRESQL__NAME", p.database.Target.Database),
		part.EnvFrom("AUTHENTIK_POSTGRESQL__USER", p.database.SecretName, p.database.UsernameKey),
		part.EnvFrom("AUTHENTIK_POSTGRESQL__PASSWORD", p.database.SecretName, p.database.PasswordKey),
		part.EnvVar("AUTHENTIK_POSTGRESQL__SSLMODE", p.database.Target.SSLMode),
		// CONN_MAX_AGE stays at its default of 0: under the ASGI server anything else reuses nothing and
		// leaks connections (facts/authentik-measured.md 6).
	}
	if p.redis != nil {
		env = append(env,
			part.EnvVar("AUTHENTIK_REDIS__HOST", p.redis.Host),
			part.EnvVar("AUTHENTIK_REDIS__PORT", part.Itoa(p.redis.Port)),
			part.EnvFrom("AUTHENTIK_REDIS__PASSWORD", p.redis.SecretName, p.redis.PasswordKey),
		)
	}
	env = append(env, listen(p.release)...)
	if p.release.baseURL {
		// Kept in the system settings at the first start that finds none there, and from then on only read from them
		// (authentik/tenants/apps.py, backfill_base_url).
		env = append(env, part.EnvVar("AUTHENTIK_WEB__BASE_URL", "https://"+p.st.Spec.Host))
	}
	if mode == "worker" {
		env = append(env,
			// Read by the worker at the first start; file:// is not understood here (facts/authentik.md 4).
			part.EnvFrom("AUTHENTIK_BOOTSTRAP_PASSWORD", AdminSecretName(p.st), KeyPassword),
			part.EnvFrom("AUTHENTIK_BOOTSTRAP_TOKEN", AdminSecretName(p.st), KeyToken),
			part.EnvFrom("AUTHENTIK_BOOTSTRAP_EMAIL", AdminSecretName(p.st), KeyEmail),
		)
	}
	_, given := p.extraEnvironment()
	for _, suggested := range p.suggestions(mode) {
		if _, differs := given[suggested.Name]; !differs {
			env = append(env, suggested)
		}
	}
	return env
}

// suggestions are settings that a user may give another value in envFromSecrets.
func (p planner) suggestions(mode string) []corev1.EnvVar {
	suggested := []corev1.EnvVar{
		// Calls to the world that nobody asked for; they also disturb measurements (facts/authentik.md 3).
		part.EnvVar("AUTHENTIK_DISABLE_UPDATE_CHECK", "true"),
		part.EnvVar("AUTHENTIK_DISABLE_STARTUP_ANALYTICS", "true"),
		part.EnvVar("AUTHENTIK_ERROR_REPORTING__ENABLED", "false"),
		part.EnvVar("AUTHENTIK_LOG_LEVEL", "info"),
		// authentik's own default asks gravatar.com at each login of somebody it has not asked about for
		// eight hours, with a timeout of 5 s (facts/authentik.md 5.3). This is read once, by the migration
		// that makes the default tenant (authentik/tenants/migrations/0001_initial.py); from then on the
		// system settings of the admin interface hold, which we leave to the administrator.
		part.EnvVar("AUTHENTIK_AVATARS", "initials"),
	}
	if mode == "worker" {
		suggested = append(suggested, part.EnvVar("AUTHENTIK_WORKER__"+p.release.threads, "2"))
	}
	return suggested
}

// listen on IPv4, where the release's default is [::]: it fails on nodes without IPv6.
func listen(r release) []corev1.EnvVar {
	if !r.listensOnIPv6 {
		return nil
	}
	return []corev1.EnvVar{
		part.EnvVar("AUTHENTIK_LISTEN__HTTP", "0.0.0.0:9000"),
		part.EnvVar("AUTHENTIK_LISTEN__HTTPS", "0.0.0.0:9443"),
		part.EnvVar("AUTHENTIK_LISTEN__METRICS", "0.0.0.0:9300"),
	}
}
