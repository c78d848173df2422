// Package tlstest makes certificates for tests.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"writ.example/writ/internal/must"
)

// Authority signs certificates of this host. Its own is in File, and alone in Pool.
type Authority struct {
	t    testing.TB
	File string
	Pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(t testing.TB) *Authority {
	a := &Authority{t: t, Pool: x509.NewCertPool()}
	a.File, _ = a.Certificate(time.Now().Add(time.Hour))
	a.Pool.AddCert(a.cert)
	return a
}

// Certificate makes a certificate of a server or a client, and its key, in PEM files. The first one is the authority's.
func (a *Authority) Certificate(ends time.Time) (certFile, keyFile string) {
	a.t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: ends,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true, IsCA: a.cert == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer))(a.t)
	if a.cert == nil {
		a.key, a.cert = key, must.Get(x509.ParseCertificate(der))(a.t)
	}
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))(a.t)
	dir := a.t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must.Do(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
}

// Pair makes a certificate that lasts as long as a test, and reads it.
func (a *Authority) Pair() tls.Certificate {
	a.t.Helper()
	return must.Get(tls.LoadX509KeyPair(a.Certificate(time.Now().Add(time.Hour))))(a.t)
}
