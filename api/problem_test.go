package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

func TestProblemOf(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("doing it: %w", err) }
	for name, tc := range map[string]struct {
		err    error
		status int
		code   string
		logged bool
	}{
		"invalid":           {wrap(invalid("f", "m")), 400, codeInvalidRequest, false},
		"bad cursor":        {wrap(storage.ErrBadCursor), 400, codeInvalidRequest, false},
		"not found":         {wrap(storage.ErrNotFound), 404, codeNotFound, false},
		"policy not found":  {wrap(about("policy", wrap(storage.ErrNotFound))), 404, "policy_not_found", false},
		"agent not found":   {about("agent", storage.ErrNotFound), 404, "agent_not_found", false},
		"plan limit":        {wrap(&storage.LimitError{What: "agents", Limit: 5}), 403, codePlanLimit, false},
		"intent conflict":   {wrap(ledger.ErrIntentConflict), 409, codeIntentConflict, false},
		"overloaded":        {wrap(ledger.ErrOverloaded), 503, codeOverloaded, false},
		"closed":            {wrap(ledger.ErrClosed), 503, codeOverloaded, false},
		"deadline":          {wrap(context.DeadlineExceeded), 503, codeTimeout, true},
		"given up":          {wrap(context.Canceled), 503, codeTimeout, true},
		"refusal":           {wrap(insufficientScope(scopeRulesRead)), 403, codeInsufficientScope, false},
		"unauthorized":      {errUnauthorized, 401, codeUnauthorized, false},
		"store unavailable": {wrap(storage.ErrUnavailable), 503, codeStoreUnavailable, false},
		"store's deadline":  {wrap(errors.Join(storage.ErrUnavailable, context.DeadlineExceeded)), 503, codeStoreUnavailable, false},
		"store's conflict":  {wrap(storage.ErrConflict), 500, codeInternal, true},
		"unknown":           {errors.New("boom"), 500, codeInternal, true},
		"panic":             {&panicError{"boom", nil}, 500, codeInternal, true},
		"about a fault":     {about("policy", errors.New("boom")), 500, codeInternal, true},
		"invalid, by chain": {errors.Join(errors.New("x"), invalid("f", "m")), 400, codeInvalidRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := problemOf(tc.err)
			if p.Status != tc.status || p.Code != tc.code || p.logged != tc.logged || p.Detail == "" {
				t.Errorf("problemOf(%v) = %+v, want %d %s, logged %v", tc.err, p, tc.status, tc.code, tc.logged)
			}
			if (p.retryAfter > 0) != (p.Status == http.StatusServiceUnavailable) {
				t.Errorf("problemOf(%v) retries after %d s", tc.err, p.retryAfter)
			}
		})
	}
	if about("policy", nil) != nil {
		t.Error("about(nil) is an error")
	}
}

func TestDecision_Errors_A400NamesEveryField(t *testing.T) {
	fields := []engine.FieldError{{Field: "a", Message: "x"}, {Field: "b", Message: "y"}}
	same(t, "errors", fields, problemOf(&engine.InvalidError{Fields: fields}).Errors)
}

// TestDecision_Resources_AStoredPolicyThatNoLongerCompilesDenies checks "A stored policy version that no longer
// compiles denies with `policy.unreadable`".
func TestDecision_Resources_AStoredPolicyThatNoLongerCompilesDenies(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.store.corrupt = func(p *engine.ActionPolicy) { p.BlockedResourcePatterns = []string{"a["} }
	h.tell(storage.Change{Kind: storage.PolicyKind, Org: acme, ID: policyID}) // register has cached the policy
	got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	if got.Approved || len(got.Reasons) != 1 || !strings.HasPrefix(got.Reasons[0], string(engine.CodePolicyUnreadable)+": ") {
		t.Errorf("evaluate = %+v, want a deny for %s", got, engine.CodePolicyUnreadable)
	}
}

func TestDecision_Errors_InstanceIsThePathWithoutTheQuery(t *testing.T) {
	h := start(t)
	p := h.do("PUT", "/v1/rules/%C3%A9?private=1", "", nil).wantProblem(http.StatusMethodNotAllowed, codeMethodNotAllowed)
	if p.Instance != "/v1/rules/%C3%A9" || p.Type != "urn:writ:problem:method_not_allowed" || p.Title != "Method not allowed" {
		t.Errorf("problem = %+v, want the path, a type and a title", p)
	}
}

func TestOverload_IsA503ToTryAgain(t *testing.T) {
	h := start(t)
	h.register(acme)
	must(t, h.ledger.Close(t.Context()))
	r := h.evaluate(acme, intent())
	r.wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	r.wantHeader("Retry-After", "1")
}

func TestDecision_Errors_Members(t *testing.T) {
	h := start(t)
	members := []string{"type", "title", "status", "detail", "instance", "code", "ok", "retryable", "request_id"}
	for path, want := range map[string][]string{
		"/nowhere":           members,
		"/v1/rules":          members,
		"/v1/tokens?limit=0": append(members[:len(members):len(members)], "errors"),
	} {
		token := ""
		if strings.Contains(path, "?") {
			token = h.operator(acme)
		}
		r := h.do("GET", path, token, nil)
		var got map[string]any
		r.into(&got)
		same(t, fmt.Sprintf("GET %s = %d: members", path, r.status), slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(got)))
		if got["ok"] != false || got["type"] != "urn:writ:problem:"+got["code"].(string) {
			t.Errorf("GET %s = %s, want ok false and a type of the code", path, r.body)
		}
		if kind := r.header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("GET %s Content-Type = %q, want application/problem+json", path, kind)
		}
	}
}
