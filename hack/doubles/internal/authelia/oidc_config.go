package authelia

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"time"
)

// OIDCConfig is identity_providers.oidc.
type OIDCConfig struct {
	HMACSecret string `yaml:"hmac_secret"`
	JWKS       []struct {
		Key string `yaml:"key"`
	} `yaml:"jwks"`
	Clients []OIDCClient `yaml:"clients"`
}

// OIDCClient is a registered client.
type OIDCClient struct {
	ID        string   `yaml:"client_id"`
	Secret    string   `yaml:"client_secret"`
	Redirects []string `yaml:"redirect_uris"`
	Scopes    []string `yaml:"scopes"`
	Grants    []string `yaml:"grant_types"`
	Consent   string   `yaml:"consent_mode"`
}

func (o *OIDCConfig) validate() (errs []error) {
	if o == nil {
		return nil
	}
	if o.HMACSecret == "" {
		errs = append(errs, errors.New("identity_providers: oidc: option 'hmac_secret' is required"))
	}
	if len(o.JWKS) == 0 {
		errs = append(errs, errors.New("identity_providers: oidc: option 'jwks' is required"))
	}
	if len(o.Clients) == 0 {
		errs = append(errs, errors.New("identity_providers: oidc: option 'clients' must have one or more clients configured"))
	}
	return errs
}

const (
	tokenLifespan   = time.Hour
	refreshLifespan = 90 * time.Minute
	codeLifespan    = time.Minute
)

var b64 = base64.RawURLEncoding

// provider is OpenID Connect with its key.
type provider struct {
	*OIDCConfig
	key    *rsa.PrivateKey
	kid    string
	grants grants
}

func newProvider(c *OIDCConfig, store grants) (*provider, error) {
	block, _ := pem.Decode([]byte(c.JWKS[0].Key))
	if block == nil {
		return nil, errors.New("identity_providers: oidc: jwks: key #1: option 'key' is no PEM")
	}
	p := &provider{OIDCConfig: c, grants: store}
	if any, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		p.key, _ = any.(*rsa.PrivateKey)
	} else {
		p.key, _ = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if p.key == nil {
		return nil, errors.New("identity_providers: oidc: jwks: the double wants an RSA key first")
	}
	sum := sha256.Sum256(p.key.N.Bytes())
	p.kid = hex.EncodeToString(sum[:3]) + "-rs256"
	return p, nil
}

func (p *provider) client(id string) *OIDCClient {
	for i := range p.Clients {
		if p.Clients[i].ID == id {
			return &p.Clients[i]
		}
	}
	return nil
}

// issue makes an opaque token, of which only the signature is stored.
func (p *provider) issue(prefix string) (token, signature string) {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	m := hmac.New(sha256.New, []byte(p.HMACSecret))
	m.Write(b)
	signature = b64.EncodeToString(m.Sum(nil))
	return prefix + b64.EncodeToString(b) + "." + signature, signature
}

// signatureOf is the part of a token that it is stored by; the double trusts its store for the rest.
func signatureOf(token string) string {
	_, signature, _ := strings.Cut(token, ".")
	return signature
}

func (p *provider) sign(claims any) (string, error) {
	payload, _ := json.Marshal(claims)
	body := b64.EncodeToString([]byte(`{"alg":"RS256","kid":"`+p.kid+`","typ":"JWT"}`)) + "." + b64.EncodeToString(payload)
	sum := sha256.Sum256([]byte(body))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	return body + "." + b64.EncodeToString(signature), err
}
