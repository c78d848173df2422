package api

import (
	"crypto"
	"errors"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api/limit"
	"writ.example/writ/api/operator"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/internal/metricstest"
)

// limitedTo configures a server that has only the limits l.
func limitedTo(l RateLimits) func(*setup) {
	return func(c *setup) { c.RateLimits = l }
}

// wantLimited checks that r is a complete 429 of the named limit.
func (r *reply) wantLimited(limit string) {
	r.t.Helper()
	r.wantProblem(http.StatusTooManyRequests, codeRateLimited)
	if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 {
		r.t.Errorf("%s Retry-After = %q, want whole seconds from 1", r.what, r.header.Get("Retry-After"))
	}
	r.wantLevel(limit, 0)
}

// wantLevel checks the two limit headers of a request that was counted.
func (r *reply) wantLevel(limit string, left int) {
	r.t.Helper()
	prefix := `"` + limit + `";r=` + strconv.Itoa(left) + ";t="
	if got := r.header.Get("RateLimit"); !strings.HasPrefix(got, prefix) {
		r.t.Errorf("%s RateLimit = %q, want %s…", r.what, got, prefix)
	}
	if got := r.header.Get("RateLimit-Policy"); !strings.HasPrefix(got, `"`+limit+`";q=`) {
		r.t.Errorf("%s RateLimit-Policy = %q, want of %s", r.what, got, limit)
	}
}

func TestThrottle_ACredentialHasItsOwnBucket(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Credential: limit.Rate{PerSecond: 2, Burst: 5}}))
	a, _ := h.key(acme, "rules:read")
	b, _ := h.key(acme, "rules:read")
	for i := range 5 {
		r := h.do("GET", "/v1/rules", a, nil).wantStatus(http.StatusOK)
		r.wantLevel("credential", 4-i)
		r.wantHeader("RateLimit-Policy", `"credential";q=5;w=3`)
	}
	h.do("GET", "/v1/rules", a, nil).wantLimited("credential")
	h.do("GET", "/v1/policies", a, nil).wantLimited("credential") // every route is limited
	h.do("GET", "/v1/rules", b, nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/rules", h.operator(rival), nil).wantStatus(http.StatusOK)
	h.clock.advance(500 * time.Millisecond)
	h.do("GET", "/v1/rules", a, nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/rules", a, nil).wantLimited("credential")
}

// TestThrottle_ANewTokenIsNoNewOperator checks that an operator's bucket belongs to the
// organization and subject. A renewed token uses the same bucket.
func TestThrottle_ANewTokenIsNoNewOperator(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Credential: limit.Rate{PerSecond: 0.001, Burst: 2}}))
	for range 2 {
		h.do("GET", "/v1/rules", h.operator(acme), nil).wantStatus(http.StatusOK)
		h.clock.advance(time.Second)
	}
	h.do("GET", "/v1/rules", h.operator(acme), nil).wantLimited("credential")
}

func TestThrottle_EvaluationsHaveTheirOwnAndNoneByDefault(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Credential: limit.Rate{PerSecond: 1, Burst: 3}, Address: limit.Rate{PerSecond: 0.001, Burst: 2}}))
	h.register(acme)
	key, _ := h.key(acme)
	for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
		for range 10 {
			if r := h.do("POST", path, key, intent()).wantStatus(http.StatusOK); r.header.Get("RateLimit") != "" {
				t.Errorf("RateLimit = %q, want none: evaluations are not limited", r.header.Get("RateLimit"))
			}
		}
	}

	h = start(t, limitedTo(RateLimits{Evaluate: limit.Rate{PerSecond: 1, Burst: 3}}))
	h.register(acme)
	key, _ = h.key(acme, "policy:evaluate", "rules:read")
	for i := range 3 {
		h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusOK).wantLevel("evaluate", 2-i)
	}
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantLimited("evaluate")
	h.do("POST", "/v1/governance/authorize", key, intent()).wantLimited("evaluate")
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	h.wantRows(acme, 3)
}

func TestThrottle_HealthIsNeverLimited(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 0.001, Burst: 1}}))
	for range 10 {
		if r := h.do("GET", "/health", "", nil).wantStatus(http.StatusOK); r.header.Get("RateLimit") != "" {
			t.Errorf("RateLimit = %q, want none", r.header.Get("RateLimit"))
		}
		if r := h.do("GET", "/health?token=x", "", nil).wantStatus(http.StatusBadRequest); r.header.Get("RateLimit") != "" {
			t.Errorf("with a credential in its URL RateLimit = %q, want none", r.header.Get("RateLimit"))
		}
	}
}

func TestThrottle_AnAddressPaysForWhatNeedsNoGoodCredential(t *testing.T) {
	unknown, _ := apikey.New()
	for name, request := range map[string]func(h *harness) *reply{
		"a public page":      func(h *harness) *reply { return h.do("GET", "/", "", nil) },
		"an unknown path":    func(h *harness) *reply { return h.do("GET", "/nope", "", nil) },
		"an unknown method":  func(h *harness) *reply { return h.do("PUT", "/v1/rules", "", nil) },
		"no credential":      func(h *harness) *reply { return h.do("GET", "/v1/rules", "", nil) },
		"junk":               func(h *harness) *reply { return h.do("GET", "/v1/rules", "junk", nil) },
		"an unknown key":     func(h *harness) *reply { return h.do("GET", "/v1/rules", unknown, nil) },
		"an evaluation":      func(h *harness) *reply { return h.do("POST", "/v1/policy/evaluate", unknown, intent()) },
		"an expired token":   func(h *harness) *reply { return h.do("GET", "/v1/rules", h.expiredOperator(acme), nil) },
		"the service bearer": func(h *harness) *reply { return h.do("GET", "/v1/ops/usage", "junk", nil) },
		"a webhook":          func(h *harness) *reply { return h.do("POST", "/v1/billing/webhook", "", `{}`) },
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 1, Burst: 3}}))
			for i := range 3 {
				r := request(h)
				if r.status == http.StatusTooManyRequests {
					t.Fatalf("request %d = 429, want its own answer", i)
				}
				r.wantLevel("address", 2-i)
			}
			request(h).wantLimited("address")
			h.clock.advance(time.Second)
			if r := request(h); r.status == http.StatusTooManyRequests {
				t.Error("a second later = 429, want its own answer")
			}
		})
	}
}

func TestThrottle_AnUnknownPathIsCountedByWhatItIsAnswered(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 1, Burst: 2}}))
	h.do("GET", "/nope", "", nil).wantProblem(http.StatusNotFound, codeNotFound)
	h.do("GET", "/nope?token=x", "", nil).wantProblem(http.StatusBadRequest, codeCredentialInURL)
	h.do("GET", "/nope", "", nil).wantLimited("address")
	text := h.admin("/metrics").Body.String()
	for _, code := range []string{codeNotFound, codeCredentialInURL, codeRateLimited} {
		if want := `writ_http_problems_total{code="` + code + `"} 1` + "\n"; !strings.Contains(text, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// TestThrottle_GuessesLockOutNobody sends guessed credentials from the address that a customer uses
// too. The customer must not be locked out.
func TestThrottle_GuessesLockOutNobody(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 1, Burst: 10}}))
	known, _ := h.key(acme, "rules:read")
	fresh, _ := h.key(acme, "rules:read")
	h.do("GET", "/v1/rules", known, nil).wantStatus(http.StatusOK)
	before := h.store.count("Token")
	for range 50 {
		guess, _ := apikey.New()
		h.do("GET", "/v1/rules", guess, nil)
	}
	if n := h.store.count("Token") - before; n > 10 {
		t.Errorf("50 guesses made %d look-ups, want at most 10", n)
	}
	h.do("GET", "/v1/rules", known, nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/rules", fresh, nil).wantLimited("address")
	h.clock.advance(time.Second)
	h.do("GET", "/v1/rules", fresh, nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/rules", fresh, nil).wantStatus(http.StatusOK)
}

// TestThrottle_AMadeUpKeyIDLocksOutNoOperator sends a token with an invented key id, which makes
// the server read the operators' keys again. Operators at the same address must still be accepted.
func TestThrottle_AMadeUpKeyIDLocksOutNoOperator(t *testing.T) {
	keys := keyPairs(t)["EdDSA"]
	file := filepath.Join(t.TempDir(), "jwks.json")
	must(t, os.WriteFile(file, jwksOf(t, map[string]crypto.Signer{"good": keys.private}), 0o600))
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 0.001, Burst: 3}}), func(c *setup) {
		c.Operators = operator.Config{Alg: "EdDSA", JWKS: file}
	})
	operator := signJWT(t, keys.method, keys.private, "good", h.claims())
	guess := signJWT(t, keys.method, keys.private, "made-up", h.claims())
	h.do("GET", "/v1/rules", operator, nil).wantStatus(http.StatusOK)
	for range 2 {
		h.do("GET", "/v1/rules", guess, nil).wantStatus(http.StatusUnauthorized)
	}
	h.do("GET", "/v1/rules", guess, nil).wantLimited("address")
	h.do("GET", "/v1/rules", operator, nil).wantStatus(http.StatusOK)
}

// TestThrottle_AUsedUpAddressIsNoOracle checks an address that has used up its limit. Its answers
// must not reveal whether a key exists or has expired.
func TestThrottle_AUsedUpAddressIsNoOracle(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 0.001, Burst: 4}}))
	key, id := h.key(acme, "rules:read")
	expired, _ := h.keyExpiring(acme, "rules:read")
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	unknown, _ := apikey.New()
	for h.do("GET", "/v1/rules", "", nil).status != http.StatusTooManyRequests {
	}
	want := ""
	for _, token := range []string{"", "junk", unknown, key, expired} {
		r := h.do("GET", "/v1/rules", token, nil)
		r.wantLimited("address")
		got := anonymous(r, "-")
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("body = %s, want %s", got, want)
		}
	}
}

func TestThrottle_AFailingStoreIsStillA500(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Address: limit.Rate{PerSecond: 1, Burst: 10}}))
	key, _ := h.key(acme, "rules:read")
	h.store.fail("Token", errors.New("unreachable"))
	h.do("GET", "/v1/rules", key, nil).wantProblem(http.StatusInternalServerError, codeInternal)
}

func TestThrottle_SeveralForwardedForLinesAreOneList(t *testing.T) {
	h := start(t, limitedTo(RateLimits{
		Address: limit.Rate{PerSecond: 0.001, Burst: 1}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	}))
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		request := "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100." + strconv.Itoa(i) + "\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
		if r := h.raw(request); r.status != want {
			t.Errorf("request %d = %d, want %d", i, r.status, want)
		}
	}
}

func TestThrottle_Metrics(t *testing.T) {
	var reg *prometheus.Registry
	h := start(t, limitedTo(RateLimits{
		Credential: limit.Rate{PerSecond: 0.001, Burst: 1}, // buckets never refill, so no bucket is dropped
		Evaluate:   limit.Rate{PerSecond: 1, Burst: 1}, Address: limit.Rate{PerSecond: 1, Burst: 1},
	}), func(c *setup) { reg = c.Registry })
	key, _ := h.key(acme, "policy:evaluate", "rules:read")
	for range 3 {
		h.do("GET", "/v1/rules", "", nil)
	}
	h.clock.advance(time.Second)
	for range 3 {
		h.do("GET", "/v1/rules", key, nil)
		h.do("POST", "/v1/policy/evaluate", key, intent())
	}
	want := map[string]float64{
		"writ_rate_limited_total address": 3, "writ_rate_limited_total credential": 2, "writ_rate_limited_total evaluate": 2,
		"writ_rate_limit_buckets changes": 0, "writ_rate_limited_total changes": 0,
		"writ_rate_limit_buckets address": 1, "writ_rate_limit_buckets credential": 2, "writ_rate_limit_buckets evaluate": 1,
	}
	got := make(map[string]float64)
	for name, m := range metricstest.Read(t, reg) {
		if strings.HasPrefix(name, "writ_rate_limit") {
			got[name] = m.Value
		}
	}
	same(t, "metrics", want, got)
}

// TestThrottle_ChangesAreAnOrganizations checks that all credentials of an organization share one
// bucket for changes. Deleting, revoking and disabling are never refused.
func TestThrottle_ChangesAreAnOrganizations(t *testing.T) {
	h := start(t, limitedTo(RateLimits{Changes: limit.Rate{PerSecond: 1, Burst: 6}}))
	a, _ := h.key(acme, "agents:write", "rules:write", "tokens:write")
	b, id := h.key(acme, "agents:write", "rules:write", "tokens:write")
	var agent, rule struct {
		ID string `json:"id"`
	}
	h.do("POST", "/v1/agents", a, obj{"name": "bot"}).wantStatus(http.StatusCreated).into(&agent)
	status := "/v1/agents/" + agent.ID + "/status"
	h.do("POST", "/v1/rules", b, obj{
		"name": "r", "condition": `{"action_type":"deploy"}`, "action": `{"decision":"deny","reason":"no"}`,
	}).wantStatus(http.StatusCreated).into(&rule)
	h.do("PATCH", status, a, obj{"status": "disabled"}).wantStatus(http.StatusOK)
	h.do("PATCH", status, b, obj{"status": "active"}).wantStatus(http.StatusOK)
	h.do("POST", "/v1/agents", b, obj{"name": "other"}).wantStatus(http.StatusCreated)

	h.do("POST", "/v1/agents", a, obj{"name": "third"}).wantLimited("changes")
	h.do("POST", "/v1/rules", h.operator(acme), obj{}).wantLimited("changes")
	h.do("POST", "/v1/agents", h.operator(rival), obj{"name": "theirs"}).wantStatus(http.StatusCreated)
	for range 9 {
		h.do("PATCH", status, a, obj{"status": "disabled"}).wantStatus(http.StatusOK)
	}
	h.do("PATCH", status, b, obj{"status": "active"}).wantLimited("changes")
	h.do("DELETE", "/v1/rules/"+rule.ID, a, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/tokens/"+id, a, nil)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	h.clock.advance(time.Second)
	h.do("PATCH", status, a, obj{"status": "active"}).wantStatus(http.StatusOK)
}
