package authentik

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// randomString is n characters of alphabet.
func randomString(n int, alphabet string) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	for i := range b {
		b[i] = alphabet[int(b[i])%len(alphabet)]
	}
	return string(b)
}

func pbkdf2sha256(password, salt string, iterations int) string {
	k, err := pbkdf2.Key(sha256.New, password, []byte(salt), iterations, 32)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(k)
}

// MakePassword hashes as Django's default hasher does.
func (b Behaviour) MakePassword(password string) string {
	salt := randomString(22, alnum)
	return fmt.Sprintf("pbkdf2_sha256$%d$%s$%s", b.Iterations, salt, pbkdf2sha256(password, salt, b.Iterations))
}

// CheckPassword verifies in the digest's own parameters. An unusable or unknown digest costs one hash too, as Django
// does it for users that do not exist (facts/authentik.md §5.3).
func (b Behaviour) CheckPassword(password, encoded string) bool {
	f := strings.Split(encoded, "$")
	n := 0
	if len(f) == 4 && f[0] == "pbkdf2_sha256" {
		n, _ = strconv.Atoi(f[1])
	}
	if n <= 0 {
		pbkdf2sha256(password, "unusable-password-salt", b.Iterations)
		return false
	}
	return subtle.ConstantTimeCompare([]byte(pbkdf2sha256(password, f[2], n)), []byte(f[3])) == 1
}
