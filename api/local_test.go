package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"writ.example/writ/api/limit"
)

// TestLocal checks that a call of the same process is answered as a call from outside is.
func TestLocal(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.key(acme)
	local := h.server.Local()
	send := func(method, path, key, body string) (*http.Response, string, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.addr+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		resp, err := local.RoundTrip(r)
		if err != nil {
			return nil, "", err
		}
		answer, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		return resp, string(answer), nil
	}
	in := intent()
	data, err := json.Marshal(in)
	must(t, err)
	wanted := string(data)
	want := h.do("POST", "/v1/policy/evaluate", key, in).wantStatus(http.StatusOK)
	got, body, err := send("POST", "/v1/policy/evaluate", key, wanted)
	must(t, err)
	if got.StatusCode != http.StatusOK || body != string(want.body) || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same intent again = %d %s, want %s, replayed", got.StatusCode, body, want.body)
	}
	for _, tt := range []struct {
		path, key, body string
		want            int
		code            string
	}{
		{"/v1/policy/evaluate", "nobody", wanted, http.StatusUnauthorized, codeUnauthorized},
		{"/v1/policy/evaluate", key, strings.Repeat(" ", 256<<10+1), http.StatusRequestEntityTooLarge, codeBodyTooLarge},
		{"/v1/nothing", key, "", http.StatusNotFound, codeNotFound},
	} {
		got, body, err := send("POST", tt.path, tt.key, tt.body)
		must(t, err)
		if got.StatusCode != tt.want || !strings.Contains(body, `"`+tt.code+`"`) {
			t.Errorf("POST %s = %d %s, want %d %s", tt.path, got.StatusCode, body, tt.want, tt.code)
		}
	}
	if _, body, err := send("GET", "/v1/authorizations/stream", h.operator(acme), ""); !errors.Is(err, errLocalStream) {
		t.Errorf("a stream = %.100s, %v, want %v", body, err, errLocalStream)
	}
}

// TestLocal_CountsStrangers checks that calls without an accepted credential are limited by their address.
func TestLocal_CountsStrangers(t *testing.T) {
	h := start(t, func(c *setup) { c.RateLimits.Address = limit.Rate{PerSecond: 1, Burst: 1} })
	for _, want := range []int{http.StatusUnauthorized, http.StatusTooManyRequests} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.addr+"/v1/credential", nil)
		must(t, err)
		resp, err := h.server.Local().RoundTrip(r)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, err)
		if resp.StatusCode != want {
			t.Errorf("GET /v1/credential = %d %s, want %d", resp.StatusCode, body, want)
		}
	}
}
