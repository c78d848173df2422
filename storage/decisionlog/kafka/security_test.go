package kafka_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"writ/storage/decisionlog/kafka"
)

// authority signs certificates of 127.0.0.1, and has its own in file.
type authority struct {
	t    *testing.T
	file string
	pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, pool: x509.NewCertPool()}
	a.file, _ = a.certificate()
	pair, err := os.ReadFile(a.file)
	must(t, err)
	a.pool.AppendCertsFromPEM(pair)
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certificate makes a certificate and its key in PEM files. The first one is the authority's.
func (a *authority) certificate() (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: a.cert == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(a.t, err)
	if a.cert == nil {
		a.key = key
		a.cert, err = x509.ParseCertificate(der)
		must(a.t, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	dir := a.t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", private)
}

// startSecure starts a broker that speaks TLS alone, verifies certificates of clients and wants a password.
func startSecure(t *testing.T, a *authority, mechanism, password string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.certificate())
	must(t, err)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(),
		kfake.Superuser(strings.ToUpper(mechanism), "writ", password), kfake.TLS(&tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool,
			MinVersion: tls.VersionTLS12,
		}))
	must(t, err)
	t.Cleanup(c.Close)
	return strings.Join(c.ListenAddrs(), ",") + "/" + topic
}

// TestSink_LogsInOverTLS has brokers that want a certificate and a password. A sink whose certificate or
// password is another sends nothing.
func TestSink_LogsInOverTLS(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	cert, key := ours.certificate()
	otherCert, otherKey := others.certificate()
	const password = "zq7canary"
	passwords := map[string]func(*kafka.Security){
		"as it should be":  func(*kafka.Security) {},
		"another password": func(s *kafka.Security) { s.Password = "other" },
	}
	all := map[string]func(*kafka.Security){
		"no password":                        func(s *kafka.Security) { s.SASL = "" },
		"brokers of another authority":       func(s *kafka.Security) { s.Certificate = others.file },
		"brokers of the system's":            func(s *kafka.Security) { s.Certificate = "" },
		"a certificate of another authority": func(s *kafka.Security) { s.ClientCertificate, s.ClientKey = otherCert, otherKey },
		"no certificate":                     func(s *kafka.Security) { s.ClientCertificate, s.ClientKey = "", "" },
		"no TLS":                             func(s *kafka.Security) { s.TLS = false },
	}
	maps.Copy(all, passwords)
	for mechanism, changes := range map[string]map[string]func(*kafka.Security){
		"plain": passwords, "scram-sha-256": all, "scram-sha-512": passwords,
	} {
		t.Run(mechanism, func(t *testing.T) {
			at := startSecure(t, ours, mechanism, password)
			good := kafka.Security{
				TLS: true, Certificate: ours.file, ClientCertificate: cert, ClientKey: key, SASL: mechanism, User: "writ", Password: password,
			}
			for name, change := range changes {
				t.Run(name, func(t *testing.T) {
					t.Parallel() // a sink that is refused tries again until its time is up
					security := good
					change(&security)
					s, err := kafka.Open(at, security)
					must(t, err)
					t.Cleanup(func() { _ = s.Close() })
					patience := 30 * time.Second
					if security != good {
						patience = time.Second
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					if err := s.Send(ctx, rows(0, 3)); (err == nil) != (security == good) || err != nil && strings.Contains(err.Error(), password) {
						t.Errorf("Send = %v", err)
					}
				})
			}
		})
	}
}

func TestOpen_RefusesWhatIsNotSecure(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must(t, os.WriteFile(empty, nil, 0o600))
	for name, security := range map[string]kafka.Security{
		"plain without TLS":      {SASL: "plain", User: "writ", Password: "zq7canary"},
		"another way to log in":  {SASL: "gssapi", User: "writ", Password: "zq7canary"},
		"no file of authorities": {TLS: true, Certificate: empty + "none"},
		"an empty file of them":  {TLS: true, Certificate: empty},
		"an empty certificate":   {TLS: true, ClientCertificate: empty, ClientKey: empty},
	} {
		if s, err := kafka.Open("127.0.0.1:1/"+topic, security); err == nil || strings.Contains(err.Error(), "zq7canary") {
			t.Errorf("%s: Open = %v, %v, want an error without the password", name, s, err)
		}
	}
}
