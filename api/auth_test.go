package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"writ.example/writ/api/operator"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
)

func flip(s string) string {
	if s == "0" {
		return "1"
	}
	return "0"
}

func (h *harness) keyExpiring(org string, scopes ...string) (key, id string) {
	h.t.Helper()
	key, id = apikey.New()
	must(h.t, h.docs.PutToken(context.Background(), &storage.Token{
		ID: id, OrganizationID: org, Scopes: scopes, Hash: apikey.Hash([]byte(key)),
		CreatedAt: h.clock.Now(), ExpiresAt: h.clock.Now(),
	}, 0))
	return key, id
}

func (h *harness) expiredOperator(org string) string {
	token, err := operator.Sign([]byte(testSecret), org, "op", h.clock.Now().Add(-2*time.Hour), time.Hour)
	must(h.t, err)
	return token
}

// substitute returns a copy of body in which id replaces "ID".
func substitute(body any, id string) any {
	b, ok := body.(obj)
	if !ok {
		return body
	}
	out := make(obj, len(b))
	for k, v := range b {
		switch {
		case k == "intent", k == "context", k == "approval", k == "denial":
			out[k] = substitute(v, id)
		case v == "ID":
			out[k] = id
		case k == "policy_id":
			out[k] = id
		default:
			out[k] = v
		}
	}
	return out
}

var requestIDMember = regexp.MustCompile(`"request_id":"[^"]*"`)

// anonymous returns the body of r without the members that differ between any two responses.
func anonymous(r *reply, id string) string {
	return strings.ReplaceAll(requestIDMember.ReplaceAllString(string(r.body), ""), id, "ID")
}

func TestDecision_Credentials_OneBodyForEveryCauseOf401(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme)
	unknown, _ := apikey.New()
	want := ""
	for name, header := range map[string]string{
		"none": "", "basic": "Basic Zm9v", "bearer alone": "Bearer", "bearer space": "Bearer ",
		"no scheme": key, "junk": "Bearer junk", "unknown key": "Bearer " + unknown,
		"truncated key": "Bearer " + key[:70], "two tokens": "Bearer " + key + " " + key, "comma": "Bearer " + key + "," + key,
		"jwt-like": "Bearer a.b.c",
	} {
		req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/rules", nil)
		must(t, err)
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		r := h.send(req)
		r.wantProblem(http.StatusUnauthorized, codeUnauthorized)
		got := anonymous(r, "-")
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s: body = %s, want %s", name, got, want)
		}
	}
}

func TestAuth_SchemeIsCaseInsensitiveAndOneHeaderAlone(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "rules:read")
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Bearer   "} {
		req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/rules", nil)
		must(t, err)
		req.Header.Set("Authorization", scheme+key)
		h.send(req).wantStatus(http.StatusOK)
	}
	req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/rules", nil)
	must(t, err)
	req.Header["Authorization"] = []string{"Bearer " + key, "Bearer " + h.operator(rival)}
	h.send(req).wantProblem(http.StatusUnauthorized, codeUnauthorized)
}

func TestAuth_KeysAreLookedUpOnceAndJunkNever(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "rules:read")
	for range 5 {
		h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	}
	if n := h.store.count("Token"); n != 1 {
		t.Errorf("%d look-ups of one key, want 1", n)
	}
	h.do("GET", "/v1/rules", key[:len(key)-1]+flip(key[len(key)-1:]), nil).wantStatus(http.StatusUnauthorized)
	if n := h.store.count("Token"); n != 1 {
		t.Errorf("%d look-ups after a key with a wrong checksum, want 1", n)
	}
}

func TestDecision_Credentials_RevocationIsEffectiveBeforeItAnswers(t *testing.T) {
	h := start(t)
	for range 20 {
		key, id := h.key(acme, "rules:read")
		h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
		h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
		h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusUnauthorized)
	}
}

func TestAuth_AKeyExpiresWhileCached(t *testing.T) {
	h := start(t)
	var out tokenSecret
	h.do("POST", "/v1/tokens", h.operator(acme), obj{
		"name": "n", "scopes": []string{"rules:read"}, "expiresAt": h.clock.Now().Add(time.Minute).Format(time.RFC3339),
	}).wantStatus(http.StatusCreated).into(&out)
	h.do("GET", "/v1/rules", out.Token, nil).wantStatus(http.StatusOK)
	h.clock.advance(time.Minute)
	h.do("GET", "/v1/rules", out.Token, nil).wantStatus(http.StatusUnauthorized)
}

func TestAuth_AStoreThatCannotTellRefuses(t *testing.T) {
	h := start(t)
	key, id := h.key(acme, "rules:read")
	h.store.fail("Token", errors.New("unreachable"))
	h.do("GET", "/v1/rules", key, nil).wantProblem(http.StatusInternalServerError, codeInternal)
	h.store.fail("Token", nil)
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	h.store.fail("Token", errors.New("unreachable"))
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	h.do("GET", "/v1/rules", key, nil).wantProblem(http.StatusInternalServerError, codeInternal)
}

func TestAuth_SecretsAreNotLogged(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "rules:read")
	h.store.fail("AllRules", errors.New("boom"))
	h.do("GET", "/v1/rules?cursor=zyxwv", key, nil).wantStatus(http.StatusInternalServerError)
	h.server.cfg.JWKS = nil // any use of JWKS panics
	h.do("GET", "/.well-known/jwks.json", key, nil).wantStatus(http.StatusInternalServerError)
	if log := h.log.String(); strings.Contains(log, key) || strings.Contains(log, "zyxwv") || !strings.Contains(log, "boom") {
		t.Errorf("log = %s, want the cause without the key or the query", log)
	}
}

// TestAuth_RefusedCredentialsStayRefused sends each refused credential three times. The first
// request may cache the credential. The cache must not let a later request succeed.
func TestAuth_RefusedCredentialsStayRefused(t *testing.T) {
	h := start(t)
	revoked, id := h.key(acme, "rules:read")
	operator := h.operator(acme)
	h.do("DELETE", "/v1/tokens/"+id, operator, nil).wantStatus(http.StatusNoContent)
	expired, _ := h.keyExpiring(acme, "rules:read")
	h.clock.advance(24 * time.Hour)
	for name, credential := range map[string]string{"a revoked key": revoked, "an expired key": expired, "an expired operator token": operator} {
		for i := range 3 {
			if r := h.do("GET", "/v1/rules", credential, nil); r.status != http.StatusUnauthorized {
				t.Errorf("%s, used for the time %d = %d, want 401", name, i+1, r.status)
			}
		}
	}
}

func TestDecision_Credentials_Scopes(t *testing.T) {
	if n := len(Scopes()); 1<<n-1 != scopeAll {
		t.Fatalf("there are %d names for the bits %b", n, scopeAll)
	}
	for name, set := range map[string]scopeSet{
		"policy:evaluate": scopeEvaluate, "policy:read": scopePolicyRead, "policy:write": scopePolicyWrite,
		"rules:read": scopeRulesRead, "rules:write": scopeRulesWrite, "agents:read": scopeAgentsRead,
		"agents:write": scopeAgentsWrite, "tokens:read": scopeTokensRead, "tokens:write": scopeTokensWrite,
		"history:read": scopeHistoryRead, "usage:read": scopeUsageRead, "billing:read": scopeBillingRead,
		"billing:write": scopeBillingWrite, "actions:record": scopeActionsRecord,
		"facts:assert": scopeFactsAssert, "approvals:read": scopeApprovalsRead, "approvals:decide": scopeApprovalsDecide,
		"budgets:release": scopeBudgetsRelease, "sessions:write": scopeSessionsWrite,
	} {
		got, _, err := parseScopes([]string{name})
		if err != nil || got != set || set.String() != name {
			t.Errorf("parseScopes(%s) = %b, %v (%s), want %b", name, got, err, set, set)
		}
	}
}

func TestDecision_Credentials_KeysAreStoredAsSHA256Only(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "rules:read")
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	tok, err := h.docs.Token(context.Background(), key[len(apikey.Prefix):len(apikey.Prefix)+apikey.IDLen])
	must(t, err)
	if bytes.Contains([]byte(key), tok.Hash[:8]) || tok.Hint != key[len(key)-4:] || tok.Hash != apikey.Hash([]byte(key)) {
		t.Errorf("stored token = %+v, want a hash and four characters of %s", tok, key)
	}
}

func TestAuth_ACachedCredentialCostsNoAllocation(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme)
	h.do("POST", "/v1/policy/evaluate", key, intent()).wantStatus(http.StatusNotFound)
	operator := h.operator(acme)
	h.do("GET", "/v1/rules", operator, nil).wantStatus(http.StatusOK)
	for name, token := range map[string]string{"API key": key, "operator token": operator} {
		var header fasthttp.RequestHeader
		header.Set("Authorization", "Bearer "+token)
		now := h.clock.Now()
		n := testing.AllocsPerRun(100, func() {
			if who, ok := h.server.auth.recognize(&header, scopeEvaluate, now); !ok || who.org != acme {
				t.Fatalf("%s: recognize = %v, %v, want %s", name, who, ok, acme)
			}
		})
		if n > 0 {
			t.Errorf("%s: recognize allocates %v times, want 0", name, n)
		}
	}
}

func TestAuth_WithoutAnAlgorithmNoOperatorIsAccepted(t *testing.T) {
	h := start(t, func(c *setup) { c.Operators = operator.Config{} })
	h.do("GET", "/v1/rules", h.operator(acme), nil).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	none, err := operator.Sign([]byte(strings.Repeat("\x00", 32)), acme, "op", h.clock.Now(), time.Hour)
	must(t, err)
	h.do("GET", "/v1/rules", none, nil).wantProblem(http.StatusUnauthorized, codeUnauthorized)
}

func BenchmarkAuthorize(b *testing.B) {
	h, key := benchHarness(b)
	signed, err := operator.Sign([]byte(testSecret), acme, "op", time.Now(), time.Hour)
	must(b, err)
	for name, token := range map[string]string{"key": key, "operator": signed} {
		b.Run(name, func(b *testing.B) {
			var header fasthttp.RequestHeader
			header.Set("Authorization", "Bearer "+token)
			now := time.Now()
			if _, err := h.server.auth.authenticate(b.Context(), &header, scopeEvaluate, now); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := h.server.auth.recognize(&header, scopeEvaluate, now); !ok {
					b.Fatal("a good credential is not recognized")
				}
			}
		})
	}
}
