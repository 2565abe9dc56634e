package authentik

import (
	"context"
	"crypto"
	"crypto/md5" //nolint:gosec // the product names its keys so
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"authstack.dev/authstack/hack/doubles/internal/authentik/schema"
)

// selfSigned is the key pair of the first start, and oidcScopes are the default blueprints' mappings, each under the
// name goauthentik.io/providers/oauth2/scope-… (blueprints/system/providers-oauth2.yaml).
const (
	selfSigned    = "authentik Self-signed Certificate"
	managedScopes = "goauthentik.io/providers/oauth2/scope-"
)

var oidcScopes = []string{"openid", "profile", "email", "offline_access"}

// installOIDC makes the columns of OpenID Connect's tables, the key pair and the scope mappings.
func installOIDC(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, schema.OIDC()); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if _, err := tx.Exec(ctx, "INSERT INTO authentik_crypto_certificatekeypair (certificatekeypair_uuid, name, key_data) VALUES ($1, $2, $3)", uuid.New(), selfSigned, string(text)); err != nil {
		return err
	}
	for _, scope := range oidcScopes {
		id := uuid.New()
		if _, err := tx.Exec(ctx, "INSERT INTO authentik_core_propertymapping (propertymapping_uuid, name, managed) VALUES ($1, $2, $3)", id, "authentik default OAuth Mapping: OpenID '"+scope+"'", managedScopes+scope); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO authentik_providers_oauth2_scopemapping (propertymapping_ptr_id, scope_name, description) VALUES ($1, $2, '')", id, scope); err != nil {
			return err
		}
	}
	return nil
}

// signingKey is a private key with its kid.
type signingKey struct {
	rsa *rsa.PrivateKey
	kid string
}

// readKey parses the key of a pair. The product does so in each request too.
func readKey(text string) (*signingKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the provider has no signing key")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the signing key does not parse") // not err: it may quote the key
	}
	sum := md5.Sum([]byte(text)) //nolint:gosec // see above
	return &signingKey{key, hex.EncodeToString(sum[:])}, nil
}

// sign makes a JWT (RS256).
func (k *signingKey) sign(claims any) (string, error) {
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	body := b64.EncodeToString([]byte(`{"alg":"RS256","kid":"`+k.kid+`","typ":"JWT"}`)) + "." + b64.EncodeToString(payload)
	sum := sha256.Sum256([]byte(body))
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, sum[:])
	return body + "." + b64.EncodeToString(signature), err
}

func (k *signingKey) jwk() map[string]any {
	return map[string]any{"alg": "RS256", "kid": k.kid, "kty": "RSA", "use": "sig", "n": b64.EncodeToString(k.rsa.N.Bytes()), "e": b64.EncodeToString(big.NewInt(int64(k.rsa.E)).Bytes())}
}

// challenged is whether a verifier answers a code challenge; one without a challenge wants none.
func challenged(challenge, method, verifier string) bool {
	if challenge == "" || method != "S256" {
		return challenge == verifier
	}
	sum := sha256.Sum256([]byte(verifier))
	return strings.TrimRight(challenge, "=") == b64.EncodeToString(sum[:])
}
