package authelia

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/argon2"

	"authstack.dev/authstack/internal/stack/part"
)

// user of Authelia's users file.
type user struct {
	Disabled    bool     `yaml:"disabled"`
	DisplayName string   `yaml:"displayname"`
	Password    string   `yaml:"password"`
	Email       string   `yaml:"email"`
	Groups      []string `yaml:"groups"`
}

// Authelia's own defaults for argon2id (facts/authelia.md 1.7); never lowered here.
const (
	argonMemory  = 65536
	argonTime    = 3
	argonThreads = 4
	argonKey     = 32
	argonSalt    = 16
)

// digest of a password in the notation of Authelia's users file.
func digest(password, salt []byte) string {
	key := argon2.IDKey(password, salt, argonTime, argonMemory, argonThreads, argonKey)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, encode(salt), encode(key))
}

// digestOf the password that was generated before it.
func digestOf(key string) part.Generator {
	return part.Generator{Key: "digest", Make: func(random io.Reader, sofar map[string][]byte) (string, error) {
		salt := make([]byte, argonSalt)
		if _, err := io.ReadFull(random, salt); err != nil {
			return "", fmt.Errorf("reading randomness for a salt: %w", err)
		}
		return digest(sofar[key], salt), nil
	}}
}

// usersFile is the user's own file with the latency user added. Everything in it stays as it is.
func usersFile(own []byte, name string, added user) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(own, &document); err != nil {
		// The error may quote the file, which holds digests.
		return nil, errors.New("it is not YAML")
	}
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it has no mapping with the key users")
	}
	users := child(document.Content[0], "users")
	if users == nil || users.Kind != yaml.MappingNode {
		return nil, errors.New("it has no mapping under the key users")
	}
	if child(users, name) != nil {
		return nil, fmt.Errorf("it has a user %s, a name that is kept for the latency test; rename that user", name)
	}
	var value yaml.Node
	if err := value.Encode(added); err != nil {
		return nil, fmt.Errorf("adding the latency user: %w", err)
	}
	users.Style = 0 // A flow mapping such as {} cannot take a block.
	users.Content = append(users.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &value)
	return yaml.Marshal(&document)
}

func child(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// adminUsersFile is the users file of a stack that brings none: one user, admin.
func adminUsersFile(name, passwordDigest, domain string) ([]byte, error) {
	return yaml.Marshal(map[string]any{"users": map[string]user{name: {
		DisplayName: "Administrator", Password: passwordDigest, Email: name + "@" + domain, Groups: []string{"admins"},
	}}})
}
