package billing

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stripe/stripe-mock/embedded"
	"github.com/stripe/stripe-mock/server"
)

// mock makes Stripe's own mock server, once for all tests: the server reads a large description.
var mock = sync.OnceValues(func() (http.Handler, error) {
	spec, err := server.LoadSpec(embedded.OpenAPISpec, "")
	if err != nil {
		return nil, err
	}
	fixtures, err := server.LoadFixtures(embedded.OpenAPIFixtures, "")
	if err != nil {
		return nil, err
	}
	stub, err := server.NewStubServer(fixtures, spec, false, false)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(stub.HandleRequest), nil
})

// stripeMock serves Stripe's mock, which checks each request against the description of the API. calls records the
// requests.
func stripeMock(t *testing.T) (url string, calls *recorder) {
	t.Helper()
	handler, err := mock()
	must(t, err)
	calls = &recorder{t: t, next: handler}
	s := httptest.NewServer(calls)
	t.Cleanup(s.Close)
	return s.URL, calls
}
