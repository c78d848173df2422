package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Security says how a sink connects to the brokers. Its zero value is a plain connection.
type Security struct {
	TLS bool
	// Certificate, if it is not empty, is a PEM file of the authorities that may sign the certificates of the
	// brokers. Without it these are the system's.
	Certificate string
	// ClientCertificate and ClientKey, if they are not empty, are the PEM files with which writ shows who it
	// is. They are read for each connection, so they can be replaced.
	ClientCertificate, ClientKey string
	// SASL is plain, scram-sha-256, scram-sha-512 or empty.
	SASL           string
	User, Password string
}

func (s *Security) options() (options []kgo.Opt, err error) {
	if s.TLS {
		config, err := s.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	switch s.SASL {
	case "":
	case "plain":
		if !s.TLS {
			return nil, errors.New("without TLS, plain would send the password for everybody to read")
		}
		options = append(options, kgo.SASL(plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()))
	case "scram-sha-256":
		options = append(options, kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()))
	case "scram-sha-512":
		options = append(options, kgo.SASL(scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()))
	default:
		return nil, errors.New("SASL: want plain, scram-sha-256 or scram-sha-512")
	}
	return options, nil
}

func (s *Security) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Certificate != "" {
		pem, err := os.ReadFile(s.Certificate)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate of the brokers' authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", s.Certificate)
		}
	}
	if s.ClientCertificate != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(s.ClientCertificate, s.ClientKey)
			if err != nil {
				return nil, fmt.Errorf("reading writ's certificate and its key: %w", err)
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}
