package mongotest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The user and the password of a set that requires a user.
const (
	User     = "writ"
	Password = "p:w/d@?&%" //nolint:gosec // for one test only
)

// secure makes the members of a set require TLS and a user. It is called before the set starts.
// The set's URI then has the options for TLS and the user.
func (s *Set) secure() error {
	cert := filepath.Join(s.dir, "server.pem")
	if err := errors.Join(writeCertificate(cert), s.requireUser()); err != nil {
		return err
	}
	s.args = append(s.args, "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", cert, "--tlsCAFile", cert,
		"--tlsAllowConnectionsWithoutCertificates")
	s.query = "&tls=true&tlsCAFile=" + cert
	return nil
}

// requireUser makes the members of a set require a user. It is called before the set starts.
func (s *Set) requireUser() error {
	key := filepath.Join(s.dir, "key")
	s.args, s.users = append(s.args, "--auth", "--keyFile", key), true
	return os.WriteFile(key, []byte(rand.Text()), 0o600)
}

// addUser adds the first user. The server lets any local client add the first user.
func (s *Set) addUser(ctx context.Context) (err error) {
	command := bson.D{
		{Key: "createUser", Value: User}, {Key: "pwd", Value: Password}, {Key: "roles", Value: bson.A{"root"}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	}
	for ctx.Err() == nil {
		if err = s.admin(ctx, s.direct(0), command); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond) // the member is not the primary yet
	}
	return err
}

// writeCertificate writes a self-signed certificate for this machine and the key of the
// certificate.
func writeCertificate(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mongotest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	return os.WriteFile(file, text, 0o600)
}
