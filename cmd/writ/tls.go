package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"writ.example/writ/internal/tlsfiles"
)

// tlsFlags are the flags of TLS on the server's own addresses.
type tlsFlags struct {
	Cert     string `name:"tls-cert" placeholder:"FILE" help:"PEM certificate, with its issuers after it. With it the API and the admin address speak https alone. SIGHUP reads it again."`
	Key      string `name:"tls-key" placeholder:"FILE" help:"PEM key of --tls-cert."`
	ClientCA string `name:"tls-client-ca" placeholder:"FILE" help:"PEM certificates of authorities: only clients with a certificate of theirs are served, on both addresses."`
}

func (f *tlsFlags) check() error {
	switch {
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("--tls-cert and --tls-key go together")
	case f.Cert == "" && f.ClientCA != "":
		return errors.New("--tls-client-ca needs --tls-cert and --tls-key")
	}
	return nil
}

// open reads the files. It returns nil without flags.
func (f *tlsFlags) open() (*tlsfiles.Server, error) {
	if f.Cert == "" {
		return nil, nil
	}
	s, err := tlsfiles.Load(tlsfiles.Files(*f))
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	return s, nil
}

// trustFlags say whom writ trusts where it calls a server over https.
type trustFlags struct {
	CA string `name:"ca" placeholder:"FILE" help:"PEM certificates of authorities that writ trusts beside the system's, where it calls a server over https."`
}

// AfterApply makes every client of the process trust them.
func (f *trustFlags) AfterApply() error {
	if f.CA == "" {
		return nil
	}
	system, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("reading the system's certificates: %w", err)
	}
	pool, err := tlsfiles.Authorities(system, f.CA)
	if err != nil {
		return fmt.Errorf("--ca: %w", err)
	}
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	return nil
}

// selfTransport sends calls of this process to its own API.
func (n *node) selfTransport() http.RoundTripper {
	if n.tls == nil {
		return http.DefaultTransport
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = n.tls.Self()
	return t
}

// urlOf returns the address at which this machine reaches ln.
func (n *node) urlOf(ln net.Listener) string {
	scheme := "http://"
	if n.tls != nil {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		return scheme + ln.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + net.JoinHostPort(host, port)
}

// url returns the address at which this machine reaches the API.
func (n *node) url() string { return n.urlOf(n.api) }

// private reports whether only this machine reaches the API.
func (n *node) private() bool {
	at, ok := n.api.Addr().(*net.TCPAddr)
	return ok && at.IP.IsLoopback()
}

// plainHTTP reports whether other machines reach the API without TLS.
func (n *node) plainHTTP(c *serveCmd) bool {
	return !n.private() && n.tls == nil && !strings.HasPrefix(c.APIURL, "https://")
}

const doTLS = "give --tls-cert and --tls-key, " +
	"--public-url https://… if a proxy in front has TLS, or --addr 127.0.0.1:PORT"

// warnOfPlainHTTP warns if other machines reach the API without TLS.
func (n *node) warnOfPlainHTTP(c *serveCmd) {
	if n.plainHTTP(c) {
		n.log.Warn("other machines reach the API without TLS: "+doTLS, "addr", n.api.Addr().String())
	}
}
