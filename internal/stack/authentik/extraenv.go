package authentik

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// owned are the variables that the operator answers for, and what to write instead. A name that ends
// with __ or _ stands for all that begin with it.
var owned = []struct{ name, instead string }{
	{"AUTHENTIK_POSTGRESQL__", "the database is described in spec.postgres"},
	{"AUTHENTIK_REDIS__", "Redis is described in spec.cache.redis"},
	{"AUTHENTIK_SECRET_KEY", "the operator generates it, once"},
	{"AUTHENTIK_BOOTSTRAP_", "the operator makes the first administrator, whose Secret is named in status.identityProvider.adminSecretName"},
	{"AUTHENTIK_LISTEN__", "Services and probes expect the ports that the operator sets"},
	{"AUTHENTIK_WEB__BASE_URL", "it follows from spec.host"},
	{"AUTHENTIK_WEB__PATH", "Services and probes expect authentik at /"},
	{"AUTHENTIK_BLUEPRINTS_DIR", "blueprints are named in spec.authentik.blueprints"},
	{"AUTHENTIK_SKIP_MIGRATIONS", "the operator waits for the migrations"},
}

// trustedProxies is the one variable of those that begin with AUTHENTIK_LISTEN__ which is a user's
// affair: whose X-Forwarded-* headers count.
const trustedProxies = "AUTHENTIK_LISTEN__TRUSTED_PROXY_CIDRS"

// ownedBecause says why a variable is refused, or returns "". authentik reads names whatever their
// case, and a dot like a double underscore (authentik/lib/config.py update_from_env).
func ownedBecause(variable string) string {
	canonical := strings.ReplaceAll(strings.ToUpper(variable), ".", "__")
	if canonical == trustedProxies {
		return ""
	}
	for _, own := range owned {
		if canonical == own.name || strings.HasSuffix(own.name, "_") && strings.HasPrefix(canonical, own.name) {
			return own.instead
		}
	}
	return ""
}

// checkExtraEnvironment says what is the matter with spec.authentik.envFromSecrets.
func checkExtraEnvironment(in part.Input) part.State {
	for i, ref := range in.Stack.Spec.Authentik.EnvFromSecrets {
		field := fmt.Sprintf("spec.authentik.envFromSecrets[%d]", i)
		if state := part.RequireSecret(in, field, ref.Name); !state.Ready {
			return state
		}
		for _, variable := range slices.Sorted(maps.Keys(in.Facts.Secrets[ref.Name])) {
			if because := ownedBecause(variable); because != "" {
				return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("Secret %s of %s has the key %s, which the operator sets itself: %s; remove the key",
					ref.Name, field, variable, because))
			}
		}
	}
	return part.Ready("")
}

// extraEnvironment of server and worker, and the names of the variables in it.
func (p planner) extraEnvironment() (from []corev1.EnvFromSource, names map[string]string) {
	names = map[string]string{}
	for _, ref := range p.spec.EnvFromSecrets {
		from = append(from, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}}})
		for variable, value := range p.in.Facts.Secrets[ref.Name] {
			names[variable] = string(value)
		}
	}
	return from, names
}
