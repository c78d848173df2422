package system

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

var envoyRequests = flag.Int("envoy-requests", 0, "of TestEnvoy_Added: how many requests go each way")

// TestEnvoy_Added measures what Envoy and writ add to a request, where -envoy-requests asks for it. In each of ten
// rounds the requests go in turns, one at a time, on one connection each: to the application itself, through an Envoy
// that asks nobody, and through one that asks writ.
func TestEnvoy_Added(t *testing.T) {
	const rounds = 10
	if *envoyRequests < rounds {
		t.Skip("-envoy-requests does not ask for it")
	}
	p := newGuarded(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	silent := startEnvoy(t, "unused", hostOf(app.URL), "route: {cluster: app}", `route: {cluster: app}
                          typed_per_filter_config:
                            envoy.filters.http.ext_authz:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                              disabled: true`)
	ways := []struct{ name, url string }{{"direct", app.URL}, {"Envoy alone", silent}, {"Envoy and writ", p.url}}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	send := func(url string) time.Duration {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/goods", nil)
		must(t, err)
		req.Host = "shop.example"
		began := time.Now()
		resp, err := transport.RoundTrip(req)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		took := time.Since(began)
		must(t, err)
		must(t, resp.Body.Close())
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("GET %s = %d %s, want 200", url, resp.StatusCode, body)
		}
		return took
	}
	ms := func(all []time.Duration, share int) float64 {
		return float64(all[len(all)*share/100].Microseconds()) / 1000
	}
	added := make([][]float64, len(ways))
	for round := range rounds + 1 {
		took := make([][]time.Duration, len(ways))
		for range *envoyRequests / rounds {
			for n, way := range ways {
				took[n] = append(took[n], send(way.url))
			}
		}
		if round == 0 { // caches fill
			continue
		}
		for n, way := range ways {
			slices.Sort(took[n])
			added[n] = append(added[n], ms(took[n], 50)-ms(took[0], 50))
			t.Logf("round %2d, %d requests, %-14s p50 %.3f ms, p99 %.3f ms, added p50 %+.3f ms",
				round, len(took[n]), way.name, ms(took[n], 50), ms(took[n], 99), added[n][round-1])
		}
	}
	for n, way := range ways {
		slices.Sort(added[n])
		t.Logf("%-14s adds to p50: %.3f ms at the median of %d rounds, %.3f to %.3f",
			way.name, added[n][rounds/2], rounds, added[n][0], added[n][rounds-1])
	}
}
