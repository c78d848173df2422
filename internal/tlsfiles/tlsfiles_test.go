package tlsfiles_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"writ.example/writ/internal/must"
	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/internal/tlsfiles/tlstest"
)

var soon = time.Now().Add(time.Hour)

// serve serves over TLS and returns the server's port.
func serve(t *testing.T, s *tlsfiles.Server) (port string) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "served")
	})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(s.Listener(ln)) }()
	t.Cleanup(func() {
		must.Do(t, srv.Close())
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve = %v", err)
		}
	})
	_, port, err := net.SplitHostPort(ln.Addr().String())
	must.Do(t, err)
	return port
}

// ask sends a request of a client with config. It returns the body.
func ask(t *testing.T, url string, config *tls.Config) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return string(must.Get(io.ReadAll(resp.Body))(t)), nil
}

// replace writes the text of one file into another.
func replace(t *testing.T, file, by string) {
	t.Helper()
	must.Do(t, os.WriteFile(file, must.Get(os.ReadFile(by))(t), 0o600))
}

func TestServer_ReadsItsFilesAgain(t *testing.T) {
	first, second := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := first.Certificate(soon)
	s := must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key}))(t)
	url := "https://localhost:" + serve(t, s)
	served := func(by *tlstest.Authority) {
		t.Helper()
		for _, a := range []*tlstest.Authority{first, second} {
			if _, err := ask(t, url, &tls.Config{RootCAs: a.Pool}); (err == nil) != (a == by) {
				t.Errorf("a client that trusts the first authority: %t: %v", a == first, err)
			}
		}
		if got, err := ask(t, url, s.Self()); got != "served" || err != nil {
			t.Errorf("the process itself gets %q, %v", got, err)
		}
	}
	served(first)
	other, otherKey := second.Certificate(soon)
	replace(t, cert, other)
	if err := s.Reload(); err == nil {
		t.Error("Reload of a certificate with the key of another = nil")
	}
	served(first)
	replace(t, key, otherKey)
	must.Do(t, s.Reload())
	served(second)
	ended, endedKey := second.Certificate(time.Now().Add(-time.Minute))
	replace(t, cert, ended)
	replace(t, key, endedKey)
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "ended on") {
		t.Errorf("Reload of a certificate that has ended = %v", err)
	}
	served(second)
}

func TestServer_Self_TrustsNoOther(t *testing.T) {
	a := tlstest.NewAuthority(t)
	load := func() *tlsfiles.Server {
		cert, key := a.Certificate(soon)
		return must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key}))(t)
	}
	if _, err := ask(t, "https://localhost:"+serve(t, load()), load().Self()); err == nil {
		t.Error("another server at the own address is trusted")
	}
}

func TestServer_AsksClients(t *testing.T) {
	ours, others := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := ours.Certificate(soon)
	s := must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key, ClientCA: others.File}))(t)
	url := "https://localhost:" + serve(t, s)
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		ok           bool
	}{
		"none": {}, "of the authority": {[]tls.Certificate{others.Pair()}, true}, "of another": {[]tls.Certificate{ours.Pair()}, false},
	} {
		if _, err := ask(t, url, &tls.Config{RootCAs: ours.Pool, Certificates: c.certificates}); (err == nil) != c.ok {
			t.Errorf("a client with a certificate %s: %v", name, err)
		}
	}
	if got, err := ask(t, url, s.Self()); got != "served" || err != nil {
		t.Errorf("the process itself gets %q, %v", got, err)
	}
}

func TestListener_TellsPlainClients(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Certificate(soon)
	s := must.Get(tlsfiles.Load(tlsfiles.Files{Cert: cert, Key: key}))(t)
	if got, err := ask(t, "http://localhost:"+serve(t, s), nil); err != nil || !strings.Contains(got, "https://") {
		t.Errorf("a client without TLS gets %q, %v", got, err)
	}
}

func TestLoad_Refuses(t *testing.T) {
	a := tlstest.NewAuthority(t)
	cert, key := a.Certificate(soon)
	for _, files := range []tlsfiles.Files{
		{}, {Cert: cert}, {Key: key}, {Cert: key, Key: cert}, {Cert: cert, Key: key, ClientCA: key}, {Cert: cert + "x", Key: key},
	} {
		if _, err := tlsfiles.Load(files); err == nil {
			t.Errorf("Load(%+v) = nil", files)
		}
	}
}
