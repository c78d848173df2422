package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/internal/apikey"
)

func TestDecision_Credentials_AKeyIsShownOnce(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	expires := h.clock.Now().Add(time.Hour)
	r := h.do("POST", "/v1/tokens", op, obj{
		"name": "ci", "scopes": []string{"rules:read", "policy:evaluate", "rules:read"}, "expiresAt": expires.Format(time.RFC3339),
	}).wantStatus(http.StatusCreated)
	var made tokenSecret
	r.into(&made)
	if id, err := apikey.Parse([]byte(made.Token)); err != nil || string(id[:]) != made.ID {
		t.Errorf("token = %s with id %s, want a key of that id", made.Token, made.ID)
	}
	list := h.do("GET", "/v1/tokens", op, nil).wantStatus(http.StatusOK)
	var rows []tokenSummary
	list.into(&rows)
	want := []tokenSummary{{
		ID: made.ID, Name: "ci", Token: "writ_" + made.ID + "_…" + made.Token[len(made.Token)-4:],
		Scopes: []string{"policy:evaluate", "rules:read"}, CreatedAt: h.clock.Now(), ExpiresAt: &expires,
	}}
	same(t, "GET", want, rows)
	if strings.Contains(string(list.body), made.Token[len(apikey.Prefix)+apikey.IDLen:len(apikey.Prefix)+apikey.IDLen+9]) {
		t.Errorf("the list %s shows the secret", list.body)
	}
	for range 2 {
		h.do("DELETE", "/v1/tokens/"+made.ID, op, nil).wantStatus(http.StatusNoContent)
	}
	if list := h.do("GET", "/v1/tokens", op, nil); string(list.body) != "[]" {
		t.Errorf("list after the revocation = %s, want []", list.body)
	}
	h.do("DELETE", "/v1/tokens/nope", op, nil).wantProblem(http.StatusNotFound, "token_not_found")
}

func TestTokens_ATokenThatNeverExpiresShowsNull(t *testing.T) {
	h := start(t)
	h.key(acme, "rules:read")
	if r := h.do("GET", "/v1/tokens", h.operator(acme), nil); !strings.Contains(string(r.body), `"expiresAt":null`) {
		t.Errorf("list = %s, want expiresAt null", r.body)
	}
}

func TestDecision_Credentials_NoScopesMeansEvaluateAlone(t *testing.T) {
	h := start(t)
	for _, body := range []obj{{"name": "a"}, {"name": "b", "scopes": []string{}}} {
		made := read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(acme), body).wantStatus(http.StatusCreated))
		h.do("POST", "/v1/policy/evaluate", made.Token, intent()).wantProblem(http.StatusNotFound, "policy_not_found")
		h.do("GET", "/v1/policies", made.Token, nil).wantProblem(http.StatusForbidden, codeInsufficientScope)
	}
}

func TestDecision_Credentials_AKeyCannotMintAScopeItLacks(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "tokens:write", "rules:read")
	mint := func(scopes ...string) *reply {
		return h.do("POST", "/v1/tokens", key, obj{"name": "n", "scopes": scopes})
	}
	mint("rules:read").wantStatus(http.StatusCreated)
	mint("tokens:write", "rules:read").wantStatus(http.StatusCreated)
	p := mint("rules:read", "rules:write").wantProblem(http.StatusForbidden, codeInsufficientScope)
	if !strings.Contains(p.Detail, "rules:write") || strings.Contains(p.Detail, "rules:read") {
		t.Errorf("detail = %q, want the missing scope alone", p.Detail)
	}
	mint().wantProblem(http.StatusForbidden, codeInsufficientScope) // the only default scope is policy:evaluate
}

// keyUntil makes a key of acme that can make other keys. The key is valid until expires.
func (h *harness) keyUntil(expires time.Time) tokenSecret {
	h.t.Helper()
	var out tokenSecret
	h.do("POST", "/v1/tokens", h.operator(acme), obj{
		"name": "minter", "scopes": []string{"tokens:write", "rules:read"}, "expiresAt": expires.Format(time.RFC3339),
	}).wantStatus(http.StatusCreated).into(&out)
	return out
}

func TestDecision_Credentials_AKeyCannotMintAKeyThatOutlivesIt(t *testing.T) {
	h := start(t)
	end := h.clock.Now().Add(time.Hour)
	parent := h.keyUntil(end)
	mint := func(token, name string, expires any) *reply {
		body := obj{"name": name, "scopes": []string{"rules:read", "tokens:write"}}
		if expires != nil {
			body["expiresAt"] = expires
		}
		return h.do("POST", "/v1/tokens", token, body)
	}
	mint(parent.Token, "later", end.Add(time.Second).Format(time.RFC3339)).wantField("expiresAt")
	var child tokenSecret
	mint(parent.Token, "sooner", end.Add(-time.Second).Format(time.RFC3339)).wantStatus(http.StatusCreated)
	mint(parent.Token, "as late", end.Format(time.RFC3339)).wantStatus(http.StatusCreated)
	mint(parent.Token, "none given", nil).wantStatus(http.StatusCreated).into(&child)
	mint(child.Token, "grandchild", nil).wantStatus(http.StatusCreated)
	mint(child.Token, "later grandchild", end.Add(time.Second).Format(time.RFC3339)).wantField("expiresAt")
	got := make(map[string]time.Time)
	rows := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil).wantStatus(http.StatusOK))
	for _, r := range rows {
		got[r.Name] = *r.ExpiresAt
	}
	want := map[string]time.Time{
		"minter": end, "sooner": end.Add(-time.Second), "as late": end, "none given": end, "grandchild": end,
	}
	same(t, "expiries", want, got)
	h.clock.advance(time.Hour)
	h.do("GET", "/v1/rules", child.Token, nil).wantProblem(http.StatusUnauthorized, codeUnauthorized)
}

func TestDecision_Credentials_AnOperatorsSessionDoesNotBoundItsKeys(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, "rules:read")
	h.clock.advance(365 * 24 * time.Hour)
	h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
}

func TestDecision_Credentials_RevokingAKeyRevokesWhatItMinted(t *testing.T) {
	h := start(t)
	parent, parentID := h.key(acme, "tokens:write", "rules:read")
	bystander, _ := h.key(acme, "rules:read")
	mint := func(token string) string {
		out := read[tokenSecret](h.do("POST", "/v1/tokens", token, obj{"name": "n", "scopes": []string{"tokens:write", "rules:read"}}).wantStatus(http.StatusCreated))
		return out.Token
	}
	child := mint(parent)
	grandchild := mint(child)
	for _, key := range []string{parent, child, grandchild} { // caches each key
		h.do("GET", "/v1/rules", key, nil).wantStatus(http.StatusOK)
	}
	h.do("DELETE", "/v1/tokens/"+parentID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	for _, key := range []string{parent, child, grandchild} {
		h.do("GET", "/v1/rules", key, nil).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	}
	h.do("GET", "/v1/rules", bystander, nil).wantStatus(http.StatusOK)
	rows := read[[]tokenSummary](h.do("GET", "/v1/tokens", h.operator(acme), nil).wantStatus(http.StatusOK))
	if len(rows) != 1 {
		t.Errorf("keys that are left = %v, want the bystander", rows)
	}
}

func TestTokens_AKeyRevokedWhileItMintsMintsNothing(t *testing.T) {
	h := start(t)
	parent, parentID := h.key(acme, "tokens:write")
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("PutToken", entered, release)
	minted := make(chan *reply)
	go func() {
		minted <- h.do("POST", "/v1/tokens", parent, obj{"name": "n", "scopes": []string{"tokens:write"}})
	}()
	<-entered
	h.do("DELETE", "/v1/tokens/"+parentID, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	close(release)
	(<-minted).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	if r := h.do("GET", "/v1/tokens", h.operator(acme), nil); string(r.body) != "[]" {
		t.Errorf("keys = %s, want none", r.body)
	}
}

// TestTokens_PlanLimit checks that only usable keys count towards a plan's limit. The limit is
// exact even if many keys are made at once.
func TestTokens_PlanLimit(t *testing.T) {
	h := start(t, freePlan(func(p *engine.Plan) { p.Tokens = 5 }))
	op := h.operator(acme)
	create := func(body obj) *reply { return h.do("POST", "/v1/tokens", op, body) }
	soon := h.clock.Now().Add(time.Hour).Format(time.RFC3339)
	create(obj{"name": "expires", "expiresAt": soon}).wantStatus(http.StatusCreated)
	var revoked tokenSecret
	create(obj{"name": "revoked"}).wantStatus(http.StatusCreated).into(&revoked)

	var made, refused atomic.Int32
	var racers sync.WaitGroup
	for i := range 50 {
		racers.Go(func() {
			switch r := create(obj{"name": fmt.Sprint("racer ", i)}); r.status {
			case http.StatusCreated:
				made.Add(1)
			case http.StatusForbidden:
				r.wantProblem(http.StatusForbidden, codePlanLimit)
				refused.Add(1)
			default:
				t.Errorf("POST = %d %s", r.status, r.body)
			}
		})
	}
	racers.Wait()
	if made.Load() != 3 || refused.Load() != 47 {
		t.Fatalf("%d of 50 at once were made and %d refused, want 3 and 47: two of five were taken", made.Load(), refused.Load())
	}
	usage := read[usageBody](h.do("GET", "/v1/usage/summary", op, nil).wantStatus(http.StatusOK))
	if got, want := usage.Meters.Tokens, (planMeter{Used: 5, Limit: 5}); got != want {
		t.Errorf("tokens of the usage summary = %+v, want %+v", got, want)
	}
	h.do("POST", "/v1/tokens", h.operator(rival), obj{"name": "n"}).wantStatus(http.StatusCreated)

	h.do("DELETE", "/v1/tokens/"+revoked.ID, op, nil).wantStatus(http.StatusNoContent)
	create(obj{"name": "in its place"}).wantStatus(http.StatusCreated)
	create(obj{"name": "n"}).wantProblem(http.StatusForbidden, codePlanLimit)
	h.clock.advance(time.Hour)
	create(obj{"name": "after one expired"}).wantStatus(http.StatusCreated)
	create(obj{"name": "n"}).wantProblem(http.StatusForbidden, codePlanLimit)
}

func TestTokens_InvalidFields(t *testing.T) {
	h := start(t)
	for name, tc := range map[string]struct {
		body  any
		field string
	}{
		"no name":              {obj{"scopes": []string{"rules:read"}}, "name"},
		"long name":            {obj{"name": strings.Repeat("n", 257)}, "name"},
		"control in name":      {obj{"name": "a\nb"}, "name"},
		"unknown scope":        {obj{"name": "n", "scopes": []string{"rules:read", "rules:*"}}, "scopes[1]"},
		"scope case":           {obj{"name": "n", "scopes": []string{"Rules:read"}}, "scopes[0]"},
		"scopes as text":       {obj{"name": "n", "scopes": "rules:read"}, "scopes"},
		"null scopes":          {obj{"name": "n", "scopes": nil}, "scopes"},
		"expired":              {obj{"name": "n", "expiresAt": h.clock.Now().Format(time.RFC3339)}, "expiresAt"},
		"expiry of year 10000": {obj{"name": "n", "expiresAt": "9999-12-31T23:59:59-23:59"}, "expiresAt"},
		"expiry not a time":    {obj{"name": "n", "expiresAt": "2026-12-01"}, "expiresAt"},
		"expiry is a number":   {obj{"name": "n", "expiresAt": 1800000000}, "expiresAt"},
		"unknown field":        {obj{"name": "n", "expires_at": "2030-01-01T00:00:00Z"}, "expires_at"},
	} {
		t.Run(name, func(t *testing.T) {
			h.do("POST", "/v1/tokens", h.operator(acme), tc.body).wantField(tc.field)
		})
	}
}
