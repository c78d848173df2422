// Package tlsfiles serves TLS by certificates in PEM files. A program reads them again while it serves:
// connections that are open go on, later ones get the new certificate.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Files names PEM files. Cert begins with the server's own certificate, and its issuers may follow. With ClientCA only
// clients are served whose certificate one of its authorities has signed.
type Files struct{ Cert, Key, ClientCA string }

// Server serves by what its files said last. It is safe for concurrent use.
type Server struct {
	files Files
	now   atomic.Pointer[tls.Config]
}

// Load reads files. It refuses a certificate that has ended.
func Load(files Files) (*Server, error) {
	s := &Server{files: files}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	return s, nil
}

// Reload reads the files again. If it fails, the server goes on with the certificates that it has.
func (s *Server) Reload() error {
	use, err := s.Read()
	if err == nil {
		use()
	}
	return err
}

// Read reads the files again. use makes the server go on with them.
func (s *Server) Read() (use func(), err error) {
	if s.files.Cert == "" || s.files.Key == "" {
		return nil, errors.New("want a certificate and its key, each in a file")
	}
	own, err := tls.LoadX509KeyPair(s.files.Cert, s.files.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate %s and its key %s: %w", s.files.Cert, s.files.Key, err)
	}
	if now := time.Now(); now.After(own.Leaf.NotAfter) {
		ended := own.Leaf.NotAfter.UTC().Format(time.RFC3339)
		return nil, fmt.Errorf("the certificate in %s ended on %s", s.files.Cert, ended)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if s.files.ClientCA != "" {
		if config.ClientCAs, err = Authorities(nil, s.files.ClientCA); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAnyClientCert
		config.VerifyConnection = func(c tls.ConnectionState) error {
			return verify(c.PeerCertificates, own.Leaf, config.ClientCAs)
		}
	}
	return func() { s.now.Store(config) }, nil
}

// verify refuses the certificates of a client unless an authority signed them, or the first is the server's
// own: with that the process calls itself.
func verify(client []*x509.Certificate, own *x509.Certificate, authorities *x509.CertPool) error {
	if client[0].Equal(own) {
		return nil
	}
	between := x509.NewCertPool()
	for _, c := range client[1:] {
		between.AddCert(c)
	}
	if _, err := client[0].Verify(x509.VerifyOptions{
		Roots: authorities, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("verifying the client's certificate: %w", err)
	}
	return nil
}

// Authorities returns others, which may be nil, with the certificates in file added.
func Authorities(others *x509.CertPool, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if others != nil {
		pool = others.Clone()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// AsksClients reports whether only clients are served that show a certificate.
func (s *Server) AsksClients() bool { return s.files.ClientCA != "" }

// Config returns the configuration of a server that speaks protocols, such as http/1.1, over TLS.
func (s *Server) Config(protocols ...string) *tls.Config {
	latest := func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config := s.now.Load().Clone()
		config.NextProtos = protocols
		return config, nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols, GetConfigForClient: latest}
}

// Ends returns when the certificate ends.
func (s *Server) Ends() time.Time { return s.now.Load().Certificates[0].Leaf.NotAfter }

// Self returns the configuration of a client in this process that calls this very server. It trusts the certificate
// that is served, whoever signed it and whatever names it has, and no other.
func (s *Server) Self() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection compares the certificate itself
		VerifyConnection: func(state tls.ConnectionState) error {
			own := s.now.Load().Certificates[0].Leaf
			if len(state.PeerCertificates) == 0 || !state.PeerCertificates[0].Equal(own) {
				return errors.New("another server answers at the own address")
			}
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &s.now.Load().Certificates[0], nil
		},
	}
}

// Listener returns ln with TLS for HTTP. A client that speaks plain HTTP is told so.
func (s *Server) Listener(ln net.Listener) net.Listener {
	return listener{tls.NewListener(ln, s.Config("http/1.1"))}
}

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // servers look at its type
	}
	return conn{c.(*tls.Conn)}, nil
}

type conn struct{ *tls.Conn }

// plainHTTP answers a request that does not begin with a TLS record.
const plainHTTP = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This server speaks https: ask again with https://.\n"

// Read implements net.Conn. A connection without a handshake ends like one that sent nothing: it has no
// request to refuse.
func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil {
		_, _ = plain.Conn.Write([]byte(plainHTTP)) // the connection is given up in any case
	}
	if err != nil && !c.ConnectionState().HandshakeComplete {
		return 0, io.EOF
	}
	return n, err //nolint:wrapcheck // servers look at its type
}
