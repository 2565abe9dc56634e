package authelia

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
)

// A User is an entry of the users file, in its real format.
type User struct {
	Disabled    bool     `yaml:"disabled"`
	DisplayName string   `yaml:"displayname"`
	Password    string   `yaml:"password"`
	Email       string   `yaml:"email"`
	Groups      []string `yaml:"groups"`
}

// loadUsers reads the users file once: a volume that swaps its ..data is not noticed by the product either (§1.7).
func loadUsers(path string) (map[string]User, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Users map[string]User `yaml:"users"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("error decoding the authentication database: %w", err)
	}
	if len(doc.Users) == 0 {
		return nil, errors.New("error decoding the authentication database: users: non zero value required")
	}
	for name, u := range doc.Users {
		if _, err := verify(u.Password, ""); err != nil {
			return nil, fmt.Errorf("user '%s': %w", name, err)
		}
	}
	return doc.Users, nil
}

// verify checks password in the digest's own parameters; with an empty password it only parses the digest. There is
// no limit on how many run at once: N logins are N times the digest's memory (§1.7).
func verify(digest, password string) (bool, error) {
	f := strings.Split(digest, "$")
	if len(f) < 4 || f[0] != "" {
		return false, errors.New("provided encoded hash has an invalid format")
	}
	switch {
	case strings.HasPrefix(f[1], "argon2") && len(f) == 6:
		var m, t uint32
		var p uint8
		if _, err := fmt.Sscanf(f[3], "m=%d,t=%d,p=%d", &m, &t, &p); err != nil {
			return false, errors.New("argon2 digest: parameters do not parse")
		}
		salt, err := base64.RawStdEncoding.DecodeString(f[4])
		if err != nil {
			return false, err
		}
		want, err := base64.RawStdEncoding.DecodeString(f[5])
		if err != nil || password == "" {
			return false, err
		}
		key := argon2.IDKey
		if f[1] == "argon2i" {
			key = argon2.Key
		}
		return subtle.ConstantTimeCompare(key([]byte(password), salt, t, m, p, uint32(len(want))), want) == 1, nil
	case strings.HasPrefix(f[1], "pbkdf2") && len(f) == 5:
		var h func() hash.Hash = sha512.New
		if f[1] == "pbkdf2-sha256" {
			h = sha256.New
		}
		n, err := strconv.Atoi(f[2])
		if err != nil {
			return false, err
		}
		dec := func(s string) ([]byte, error) {
			return base64.RawStdEncoding.DecodeString(strings.ReplaceAll(s, ".", "+"))
		}
		salt, err := dec(f[3])
		if err != nil {
			return false, err
		}
		want, err := dec(f[4])
		if err != nil || password == "" {
			return false, err
		}
		got, err := pbkdf2.Key(h, password, salt, n, len(want))
		return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
	case f[1] == "2a" || f[1] == "2b" || f[1] == "2y":
		if password == "" {
			return false, nil
		}
		return bcrypt.CompareHashAndPassword([]byte(digest), []byte(password)) == nil, nil
	}
	return false, fmt.Errorf("digest of kind '%s' is not known to the double", f[1])
}

// Hash makes an argon2id digest with Authelia's defaults for new hashes: 64 MiB, 3 passes, 4 lanes.
func Hash(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	k := argon2.IDKey([]byte(password), salt, 3, 65536, 4, 32)
	e := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=65536,t=3,p=4$%s$%s", e(salt), e(k))
}
