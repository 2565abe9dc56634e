package authelia

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"authstack.dev/authstack/api/v1alpha1"
	"authstack.dev/authstack/internal/stack/part"
)

// operatorsKeys of the configuration, which an extra file must not set, and where to write it instead:
// a value that is also given by the environment stops Authelia at its start, as do two storages, two
// backends or two notifiers (facts/authelia.md 1.1, 1.9), and a list of rules replaces the rendered one.
func operatorsKeys(spec *v1alpha1.AutheliaSpec) map[string]string {
	keys := map[string]string{
		"access_control":                  "write the rules in spec.authelia.accessControl, where the latency user is kept out of everything but its own name",
		"session.secret":                  "the operator generates it",
		"session.redis.host":              "write spec.cache.redis",
		"session.redis.port":              "write spec.cache.redis",
		"session.redis.username":          "write spec.cache.redis",
		"session.redis.password":          "write spec.cache.redis",
		"session.redis.high_availability": "write spec.cache.redis",
		"storage.encryption_key":          "the operator generates it",
		"storage.local":                   "write spec.postgres",
		"storage.mysql":                   "write spec.postgres",
		"storage.postgres.address":        "write spec.postgres",
		"storage.postgres.servers":        "write spec.postgres",
		"storage.postgres.database":       "write spec.postgres",
		"storage.postgres.username":       "write spec.postgres",
		"storage.postgres.password":       "write spec.postgres",
		"server.address":                  "the Service and the probes expect the operator's",
		"server.disable_healthcheck":      "it writes into the image's file system, which is read-only",
		"telemetry.metrics.address":       "the Service expects the operator's",
	}
	if spec.LDAP != nil {
		keys["authentication_backend.file"] = "write spec.authelia.users instead of spec.authelia.ldap"
		keys["authentication_backend.ldap.address"] = "write spec.authelia.ldap.address"
		keys["authentication_backend.ldap.user"] = "write spec.authelia.ldap.user"
		keys["authentication_backend.ldap.password"] = "write spec.authelia.ldap.passwordSecretRef"
	} else {
		keys["authentication_backend.ldap"] = "write spec.authelia.ldap instead of spec.authelia.users"
		keys["authentication_backend.file.path"] = "write spec.authelia.users.secretName"
	}
	if spec.SMTP != nil {
		keys["notifier.filesystem"] = "spec.authelia.smtp sends mail; remove one of them"
		keys["notifier.smtp.address"] = "write spec.authelia.smtp.address"
		keys["notifier.smtp.host"] = "write spec.authelia.smtp.address"
		keys["notifier.smtp.port"] = "write spec.authelia.smtp.address"
		keys["notifier.smtp.username"] = "write spec.authelia.smtp.username"
		keys["notifier.smtp.password"] = "write spec.authelia.smtp.passwordSecretRef"
		keys["notifier.smtp.sender"] = "write spec.authelia.smtp.sender"
	}
	return keys
}

// checkExtraConfig says what is the matter with spec.authelia.extraConfig. Nothing of a file's content
// is told but names of keys that are in the table above: the file may be a Secret.
func checkExtraConfig(in part.Input) part.State {
	spec := in.Stack.Spec.Authelia
	for i, extra := range spec.ExtraConfig {
		field := fmt.Sprintf("spec.authelia.extraConfig[%d]", i)
		require := part.RequireConfigMap
		if extra.Kind == v1alpha1.ExtraConfigSecret {
			require = part.RequireSecret
		}
		if state := require(in, field, extra.Name, configKey); !state.Ready {
			return state
		}
		invalid := func(problem string) part.State {
			return part.Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the key %s of %s (%s %s) %s", configKey, field, kindOf(extra), extra.Name, problem))
		}
		paths, err := pathsIn(extraContent(in, extra))
		if err != nil {
			return invalid(err.Error())
		}
		table := operatorsKeys(spec)
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if paths.has(key) {
				return invalid(fmt.Sprintf("sets %s: %s", key, table[key]))
			}
		}
	}
	return part.Ready("")
}

func kindOf(extra v1alpha1.AutheliaExtraConfig) v1alpha1.ExtraConfigKind {
	if extra.Kind == "" {
		return v1alpha1.ExtraConfigMap
	}
	return extra.Kind
}

// extraContent of a file, empty where it is missing.
func extraContent(in part.Input, extra v1alpha1.AutheliaExtraConfig) []byte {
	if extra.Kind == v1alpha1.ExtraConfigSecret {
		return in.Facts.Secrets[extra.Name][configKey]
	}
	return []byte(in.Facts.ConfigMaps[extra.Name][configKey])
}

// bringsSMTP is whether an extra file has a mail server.
func bringsSMTP(in part.Input) bool {
	return slices.ContainsFunc(in.Stack.Spec.Authelia.ExtraConfig, func(extra v1alpha1.AutheliaExtraConfig) bool {
		paths, err := pathsIn(extraContent(in, extra))
		return err == nil && paths.has("notifier.smtp")
	})
}

// keyPaths are the keys of a configuration from the top to the leaves, joined by dots. Authelia itself
// flattens what it reads, so that a key "a.b" is the same as b in a (koanf's delimiter).
type keyPaths []string

func pathsIn(content []byte) (keyPaths, error) {
	var tree map[string]any
	if err := yaml.Unmarshal(content, &tree); err != nil {
		// The error may quote the file.
		return nil, errors.New("is no YAML mapping; correct it")
	}
	var paths keyPaths
	paths.collect("", tree)
	return paths, nil
}

func (k *keyPaths) collect(prefix string, value any) {
	mapping, is := value.(map[string]any)
	if !is || len(mapping) == 0 {
		*k = append(*k, strings.ToLower(strings.TrimSuffix(prefix, ".")))
		return
	}
	for key, inner := range mapping {
		k.collect(prefix+key+".", inner)
	}
}

func (k keyPaths) has(path string) bool {
	return slices.ContainsFunc(k, func(leaf string) bool { return leaf == path || strings.HasPrefix(leaf, path+".") })
}
