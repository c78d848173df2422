package kafka_test

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"writ.example/writ/internal/tlsfiles/tlstest"
	"writ.example/writ/storage/decisionlog/kafka"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startSecure starts a broker that speaks TLS alone, verifies certificates of clients and wants a password.
func startSecure(t *testing.T, a *tlstest.Authority, mechanism, password string) string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, topic), kfake.EnableSASL(),
		kfake.Superuser(strings.ToUpper(mechanism), "writ", password), kfake.TLS(&tls.Config{
			Certificates: []tls.Certificate{a.Pair()}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool,
			MinVersion: tls.VersionTLS12,
		}))
	must(t, err)
	t.Cleanup(c.Close)
	return strings.Join(c.ListenAddrs(), ",") + "/" + topic
}

// TestSink_LogsInOverTLS has brokers that want a certificate and a password. A sink whose certificate or
// password is another sends nothing.
func TestSink_LogsInOverTLS(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	ours, others := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Certificate(soon)
	otherCert, otherKey := others.Certificate(soon)
	const password = "zq7canary"
	passwords := map[string]func(*kafka.Security){
		"as it should be":  func(*kafka.Security) {},
		"another password": func(s *kafka.Security) { s.Password = "other" },
	}
	all := map[string]func(*kafka.Security){
		"no password":                        func(s *kafka.Security) { s.SASL = "" },
		"brokers of another authority":       func(s *kafka.Security) { s.Certificate = others.File },
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
				TLS: true, Certificate: ours.File, ClientCertificate: cert, ClientKey: key, SASL: mechanism, User: "writ", Password: password,
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
