package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func TestDecision_Resources_Registering(t *testing.T) {
	h := start(t)
	put := func(changes ...obj) *reply {
		return h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": policy(acme, changes...)})
	}
	var got registered
	put().wantStatus(http.StatusCreated).into(&got)
	if !got.Created || got.PolicyID != policyID || got.Version != 1 || got.Status != engine.StatusActive || len(got.AllowedActionTypes) != 2 {
		t.Errorf("register = %+v, want the stored version, created", got)
	}
	t.Run("the same version with the same content is 201 again", func(t *testing.T) {
		put(obj{"updated_at": "2026-11-21T00:00:00Z"}).wantStatus(http.StatusCreated).into(&got)
		if got.Created {
			t.Error("created = true, want false")
		}
	})
	t.Run("with different content it is 400 naming the version to use", func(t *testing.T) {
		r := put(obj{"agent_id": "other"})
		r.wantField("policy.version")
		if !strings.Contains(string(r.body), "must be greater than 1") {
			t.Errorf("register = %s, want the newest version named", r.body)
		}
	})
	t.Run("an older version is 400", func(t *testing.T) {
		put(obj{"version": 5}).wantStatus(http.StatusCreated)
		r := put(obj{"version": 4})
		r.wantField("policy.version")
		if !strings.Contains(string(r.body), "must be greater than 5") {
			t.Errorf("register = %s, want the newest version named", r.body)
		}
	})
	t.Run("organization_id must be the credential's", func(t *testing.T) {
		put(obj{"version": 9, "organization_id": rival}).wantField("policy.organization_id")
	})
	t.Run("upper-case policy ids are the same policy", func(t *testing.T) {
		put(obj{"version": 6, "policy_id": strings.ToUpper(policyID)}).wantStatus(http.StatusCreated).into(&got)
		if got.PolicyID != policyID {
			t.Errorf("policy_id = %s, want %s", got.PolicyID, policyID)
		}
	})
}

// TestRegisterPolicy_Compiled checks that a decision under a policy that was just registered, or replaced, compiles
// none, and decides under the newest version.
func TestRegisterPolicy_Compiled(t *testing.T) {
	h := start(t)
	loads := func() float64 {
		return metricstest.Read(t, h.server.cfg.Registry)["writ_cache_loads_total policies"].Value
	}
	for i, status := range []string{"active", "suspended"} {
		h.register(acme, obj{"version": i + 1, "status": status})
		before := loads()
		if before != float64(i+1) {
			t.Errorf("%v loads after %d registrations, want one for each", before, i+1)
		}
		got := read[result](h.evaluate(acme, intent()))
		if n := loads() - before; got.Approved != (status == "active") || n != 0 {
			t.Errorf("evaluate under a version that is %s = %+v with %v loads, want none", status, got, n)
		}
	}
}

// TestDecision_Resources_RegisteringWarns checks "A warning (warnings: [{field, message}] in the 201): what can match
// next to nothing … or has a fragment or user info, which no reading keeps."
func TestDecision_Resources_RegisteringWarns(t *testing.T) {
	h := start(t)
	var got registered
	h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": policy(acme, obj{
		"allowed_resource_patterns": []string{"https://api.example.com/**", "https://api.example.com"},
		"blocked_resource_patterns": []string{"/etc"},
	})}).wantStatus(http.StatusCreated).into(&got)
	var fields []string
	for _, w := range got.Warnings {
		fields = append(fields, w.Field)
	}
	want := []string{"policy.allowed_resource_patterns[1]", "policy.blocked_resource_patterns[0]"}
	if !slices.Equal(fields, want) {
		t.Errorf("warnings = %+v, want them about %v", got.Warnings, want)
	}
}

func TestRegisterPolicy_InvalidFields(t *testing.T) {
	h := start(t)
	for field, change := range map[string]obj{
		"policy.policy_id":                    {"policy_id": "x"},
		"policy.version":                      {"version": 0},
		"policy.organization_id":              {"organization_id": ""},
		"policy.agent_id":                     {"agent_id": ""},
		"policy.allowed_action_types[1]":      {"allowed_action_types": []string{"ok", ""}},
		"policy.blocked_resource_patterns[1]": {"blocked_resource_patterns": []string{"ok/**", "[z"}},
		"policy.allowed_resource_patterns[0]": {"allowed_resource_patterns": []string{"{a"}},
		"policy.max_cost_minor":               {"max_cost_minor": -1},
		"policy.currency":                     {"currency": "eur"},
		"policy.status":                       {"status": "on"},
		"policy.updated_at":                   {"updated_at": "today"},
		"policy.blocked_resource_pattern":     {"blocked_resource_pattern": []string{"x"}},
		"policy.denied_action_types":          {"denied_action_types": nil},
	} {
		t.Run(field, func(t *testing.T) {
			h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": policy(acme, change)}).wantField(field)
		})
	}
	for _, required := range []string{"policy_id", "version", "organization_id", "agent_id", "allowed_action_types", "status", "updated_at"} {
		t.Run("without "+required, func(t *testing.T) {
			p := policy(acme)
			delete(p, required)
			h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": p}).wantField("policy." + required)
		})
	}
	h.do("POST", "/v1/policies/register", h.operator(acme), obj{}).wantField("policy")
}

func TestDecision_Plans_PoliciesAreLimited(t *testing.T) {
	h := start(t)
	for range 10 {
		h.register(acme, obj{"policy_id": uuid.NewString()})
	}
	r := h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": policy(acme)})
	if p := r.wantProblem(http.StatusForbidden, codePlanLimit); !strings.Contains(p.Detail, "10") {
		t.Errorf("detail = %q, want the limit", p.Detail)
	}
	must(t, storagetest.PutSubscription(context.Background(), h.docs, &storage.Subscription{OrganizationID: acme, Plan: "pro"}))
	h.register(acme)
}

func TestDecision_Resources_ListsTakeLimitAndCursor(t *testing.T) {
	h := start(t)
	for v := 1; v <= 5; v++ {
		h.register(acme, obj{"version": v})
	}
	h.register(rival)
	var versions []int64
	path := "/v1/policies?limit=2"
	for pages := 0; path != "" && pages < 5; pages++ {
		r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK)
		var got page[engine.ActionPolicy]
		r.into(&got)
		for _, p := range got.Data {
			versions = append(versions, p.Version)
		}
		path = nextPath(t, r)
		if (got.NextCursor == nil) != (path == "") {
			t.Errorf("next_cursor = %v, Link to %q, want both or none", got.NextCursor, path)
		}
	}
	if got := fmt.Sprint(versions); got != "[5 4 3 2 1]" {
		t.Errorf("versions = %s, want [5 4 3 2 1]", got)
	}
}

// nextPath returns the path of the next page from the Link header, or "".
func nextPath(t testing.TB, r *reply) string {
	t.Helper()
	link := r.header.Get("Link")
	if link == "" {
		return ""
	}
	path, ok := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	if !ok {
		t.Fatalf("Link = %q, want one of rel next", link)
	}
	return path
}

func TestDecision_Resources_LimitIs1To500AndCursorsAreTheListsOwn(t *testing.T) {
	h := start(t)
	for _, path := range []string{"/v1/policies", "/v1/rules", "/v1/tokens", "/v1/agents", "/v1/authorizations"} {
		for query, field := range map[string]string{
			"limit=0": "limit", "limit=501": "limit", "limit=x": "limit", "limit=": "limit", "limit=1&limit=2": "limit",
			"cursor=": "cursor", "cursor=%00": "cursor", "cursor=abc": "cursor", "cursor=" + strings.Repeat("a", 2000): "cursor",
			"decisoin=allow": "decisoin", "Limit=1": "Limit", "%zz": "query", "a;b": "query",
		} {
			t.Run(path+"?"+query, func(t *testing.T) {
				h.do("GET", path+"?"+query, h.operator(acme), nil).wantField(field)
			})
		}
		h.do("GET", path+"?limit=500", h.operator(acme), nil).wantStatus(http.StatusOK)
	}
	h.do("POST", "/v1/policy/evaluate?dry_run=true", h.operator(acme), intent()).wantField("dry_run")
}

func TestLists_OfNothingAreEmptyArrays(t *testing.T) {
	h := start(t)
	for path, want := range map[string]string{
		"/v1/policies": `{"data":[],"next_cursor":null}`, "/v1/agents": `{"data":[],"next_cursor":null}`,
		"/v1/authorizations": `{"data":[],"next_cursor":null}`, "/v1/rules": `[]`, "/v1/tokens": `[]`,
	} {
		if r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK); string(r.body) != want {
			t.Errorf("GET %s = %s, want %s", path, r.body, want)
		}
	}
}

func TestDecision_Resources_EvaluationUsesTheNewestVersion(t *testing.T) {
	h := start(t)
	h.register(acme)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	h.register(acme, obj{"version": 3, "denied_action_types": []string{"deploy"}})
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	h.do("POST", "/v1/policies/register", h.operator(acme), obj{"policy": policy(acme, obj{"version": 2})}).wantStatus(http.StatusBadRequest)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	h.register(acme, obj{"version": 4})
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}
