package part

import (
	"fmt"

	"authstack.dev/authstack/api/v1alpha1"
)

// RequireSecret says what is the matter with a Secret that the spec names: missing, or without a key.
// The state is Ready where nothing is. With no keys, it only has to exist. A missing Secret does not stall the stack: it may be made by
// another controller, or later in the same apply.
func RequireSecret(in Input, field, name string, keys ...string) State {
	data, found := in.Facts.Secrets[name]
	if !found {
		instead := "or remove it from " + field
		if len(keys) > 0 {
			instead = "with the keys " + list(keys)
		}
		return Waiting(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %s of %s does not exist in namespace %s; create it %s",
			name, field, in.Stack.Namespace, instead))
	}
	for _, key := range keys {
		if len(data[key]) == 0 {
			return Waiting(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %s of %s has no key %s; add it", name, field, key))
		}
	}
	return Ready("")
}

// RequireConfigMap is RequireSecret for ConfigMaps; with no keys, it only has to exist.
func RequireConfigMap(in Input, field, name string, keys ...string) State {
	data, found := in.Facts.ConfigMaps[name]
	if !found {
		return Waiting(v1alpha1.ReasonSecretMissing, fmt.Sprintf("ConfigMap %s of %s does not exist in namespace %s; create it or remove it from %s",
			name, field, in.Stack.Namespace, field))
	}
	for _, key := range keys {
		if data[key] == "" {
			return Waiting(v1alpha1.ReasonSecretMissing, fmt.Sprintf("ConfigMap %s of %s has no key %s; add it", name, field, key))
		}
	}
	return Ready("")
}

func list(words []string) string {
	out := ""
	for i, word := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			out += " and "
		default:
			out += ", "
		}
		out += word
	}
	return out
}
