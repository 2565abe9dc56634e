// Package pki makes the keys and certificates of a cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime is longer than any cluster of this kind will live.
const lifetime = 10 * 365 * 24 * time.Hour

// Authority signs certificates and writes them to one folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority and writes dir/name.crt; its key stays in memory
// unless WriteKey is called: nothing is signed later but by the controller manager.
func NewAuthority(dir, name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, cert: cert, key: key}
	return a, a.write(name+".crt", "CERTIFICATE", der, 0o644)
}

// WriteKey writes the authority's own key to dir/name.key.
func (a *Authority) WriteKey(name string) error { return writeKey(a.dir, name, a.key) }

// Subject is whom a certificate is for.
type Subject struct {
	// Name is the common name: a user's, in Kubernetes.
	Name string
	// Groups are the organizations: a user's groups, in Kubernetes.
	Groups []string
	// Hosts are names and addresses, for servers.
	Hosts []string
}

// Issue writes dir/file.crt and dir/file.key.
func (a *Authority) Issue(file string, subject Subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := template(pkix.Name{CommonName: subject.Name, Organization: subject.Groups})
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range subject.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := a.write(file+".crt", "CERTIFICATE", der, 0o644); err != nil {
		return err
	}
	return writeKey(a.dir, file, key)
}

// SigningKey writes dir/file.key and its public half dir/file.pub.
func SigningKey(dir, file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(dir, file, key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, file+".pub"), "PUBLIC KEY", der, 0o644)
}

func template(name pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		// The clock of a virtual machine may be set back after a start.
		NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter:  time.Now().Add(lifetime),
	}
}

func (a *Authority) write(file, kind string, der []byte, mode os.FileMode) error {
	return writePEM(filepath.Join(a.dir, file), kind, der, mode)
}

func writeKey(dir, file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, file+".key"), "PRIVATE KEY", der, 0o600)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
