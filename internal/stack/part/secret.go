package part

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// RandomString of n letters and digits: safe in every configuration file, URL and shell.
func RandomString(random io.Reader, n int) (string, error) {
	out := make([]byte, 0, n)
	buffer := make([]byte, n)
	for len(out) < n {
		if _, err := io.ReadFull(random, buffer); err != nil {
			return "", fmt.Errorf("reading randomness for a generated secret: %w", err)
		}
		for _, b := range buffer {
			// 248 is the largest multiple of 62 in a byte; what is above would favour some letters.
			if b < 248 && len(out) < n {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out), nil
}

// Generator makes the value of one key of a Secret. It sees the values of the keys before it.
type Generator struct {
	Key  string
	Make func(random io.Reader, sofar map[string][]byte) (string, error)
}

// Fixed is a value that is not generated.
func Fixed(key, value string) Generator {
	return Generator{key, func(io.Reader, map[string][]byte) (string, error) { return value, nil }}
}

// Random is n random letters and digits.
func Random(key string, n int) Generator {
	return Generator{key, func(random io.Reader, _ map[string][]byte) (string, error) {
		return RandomString(random, n)
	}}
}

// GeneratedSecret is a Secret whose missing values are generated once. What exists in the cluster is
// never replaced: the values are taken from the facts, and the Secret is immutable, so that a plan
// made from stale facts is refused by the API server instead of replacing a password in use.
func GeneratedSecret(in Input, meta metav1.ObjectMeta, generators ...Generator) (*corev1.Secret, error) {
	data := maps.Clone(in.Facts.Secrets[meta.Name])
	if data == nil {
		data = map[string][]byte{}
	}
	for _, generator := range generators {
		if len(data[generator.Key]) > 0 {
			continue
		}
		value, err := generator.Make(in.Random, data)
		if err != nil {
			return nil, err
		}
		data[generator.Key] = []byte(value)
	}
	secret := NewSecret(meta, data)
	immutable := true
	secret.Immutable = &immutable
	return secret, nil
}

// NewSecret of type Opaque.
func NewSecret(meta metav1.ObjectMeta, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: meta,
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// NewConfigMap with text.
func NewConfigMap(meta metav1.ObjectMeta, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: meta,
		Data:       data,
	}
}

// Checksum of contents in order, for the annotation that rolls Pods when what they read at start
// changes. Lengths are hashed too, so that moving a byte from one content to the next shows.
func Checksum(contents ...[]byte) string {
	hash := sha256.New()
	for _, content := range contents {
		fmt.Fprintf(hash, "%d:", len(content))
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// Flatten a map to contents in the order of its keys, for Checksum.
func Flatten[T string | []byte](data map[string]T) [][]byte {
	var contents [][]byte
	for _, key := range slices.Sorted(maps.Keys(data)) {
		contents = append(contents, []byte(key), []byte(data[key]))
	}
	return contents
}
