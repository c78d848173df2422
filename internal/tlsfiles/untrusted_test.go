package tlsfiles_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"writ.example/writ/internal/tlsfiles"
)

// TestAdvise holds that only an authority that is not trusted is advised on: neither a wrong name nor a server that is
// gone is mended by trusting somebody else.
func TestAdvise(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		url     string
		config  *tls.Config
		advised bool
	}{
		"another authority": {server.URL, &tls.Config{RootCAs: x509.NewCertPool()}, true},
		"another name":      {server.URL, &tls.Config{RootCAs: trusted, ServerName: "other.invalid"}, false},
		"no server":         {gone.URL, &tls.Config{RootCAs: trusted}, false},
	} {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: c.config}}
		resp, err := client.Get(c.url)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: the server is trusted", name)
			continue
		}
		if got := tlsfiles.Advise(err); strings.Contains(got.Error(), "--ca") != c.advised {
			t.Errorf("%s: Advise = %v, want advice: %v", name, got, c.advised)
		}
	}
}
