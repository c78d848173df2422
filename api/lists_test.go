package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/scrub/scrubtest"
	"writ.example/writ/rego"
)

// paying returns an intent that names payee in its metadata.
func paying(payee string) obj {
	return intent(obj{"metadata": obj{"payee": payee}})
}

func TestLists_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	got := read[engine.List](h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{"b", "a", "b"}}).wantStatus(http.StatusCreated))
	want := engine.List{Name: "payees", Values: []string{"a", "b"}, Version: 1, CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now()}
	same(t, "created", want, got)
	h.clock.advance(time.Minute)
	want.Values, want.Version, want.UpdatedAt = []string{}, 2, h.clock.Now()
	got = engine.List{}
	h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{}}).wantStatus(http.StatusOK).into(&got)
	same(t, "changed", want, got)
	got = engine.List{}
	h.do("GET", "/v1/lists/payees", op, nil).wantStatus(http.StatusOK).into(&got)
	same(t, "GET", want, got)
	all := read[page[namedSummary]](h.do("GET", "/v1/lists", op, nil).wantStatus(http.StatusOK))
	same(t, "GET /v1/lists", []namedSummary{{"payees", 2, 0, want.CreatedAt, want.UpdatedAt}}, all.Data)
	h.do("DELETE", "/v1/lists/payees", op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/lists/payees", op, nil).wantProblem(http.StatusNotFound, "list_not_found")
	h.do("GET", "/v1/lists/payees", op, nil).wantProblem(http.StatusNotFound, "list_not_found")
}

// TestLists_IfMatch checks that a caller cannot overwrite a change that the caller has not seen.
func TestLists_IfMatch(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	const path = "/v1/lists/payees"
	values := func(all ...string) obj { return obj{"values": all} }
	refused := func(method string, body any, header, value string) {
		t.Helper()
		h.do(method, path, op, body, header, value).wantProblem(http.StatusPreconditionFailed, codeListChanged)
	}
	refused("PUT", values("a"), "If-Match", "*")
	l := read[engine.List](h.do("PUT", path, op, values("a"), "If-None-Match", "*").wantStatus(http.StatusCreated))
	refused("PUT", values("b"), "If-None-Match", "*")
	refused("PUT", values("a"), "If-None-Match", "*") // equal values, but the caller did not store them
	first := `"` + l.UpdatedAt.Format(time.RFC3339Nano) + `"`
	h.clock.advance(time.Millisecond)
	h.do("PUT", path, op, values("b"), "If-Match", first).wantStatus(http.StatusOK).into(&l)
	for _, stale := range []string{first, `"x"`, "2"} {
		refused("PUT", values("c"), "If-Match", stale)
		refused("DELETE", nil, "If-Match", stale)
	}
	got := read[engine.List](h.do("GET", path, op, nil).wantStatus(http.StatusOK))
	same(t, "refused changes changed the list", l, got)
	h.do("PUT", path, op, values("c"), "If-Match", "*").wantStatus(http.StatusOK)
	h.do("DELETE", path, op, nil, "If-Match", "*").wantStatus(http.StatusNoContent)
	h.do("DELETE", path, op, nil, "If-Match", "*").wantProblem(http.StatusNotFound, "list_not_found")
}

// TestLists_NameThatIsASecret checks that a list is refused if its name looks like a secret. The
// name would be in URLs and in the store.
func TestLists_NameThatIsASecret(t *testing.T) {
	h := start(t)
	for _, c := range scrubtest.Canaries(1) {
		if c.Somebody || condition.CheckListName(c.Value) != nil {
			continue
		}
		h.do("PUT", "/v1/lists/"+c.Value, h.operator(acme), obj{"values": []string{"a"}}).wantField("name")
		return
	}
	t.Error("no canary can be the name of a list")
}

func TestLists_Invalid(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	for name, tc := range map[string]struct {
		path  string
		body  any
		field string
	}{
		"no values":         {"payees", obj{}, "values"},
		"null":              {"payees", obj{"values": nil}, "values"},
		"a number":          {"payees", obj{"values": []any{1}}, "values[0]"},
		"an empty value":    {"payees", obj{"values": []string{"a", ""}}, "values[1]"},
		"a long value":      {"payees", obj{"values": []string{strings.Repeat("x", 257)}}, "values[0]"},
		"too many values":   {"payees", obj{"values": make([]string, 10_001)}, "values"},
		"a name with space": {"pay%20ees", obj{"values": []string{}}, "name"},
		"a capital":         {"Payees", obj{"values": []string{}}, "name"},
		"another member":    {"payees", obj{"values": []string{}, "name": "x"}, "name"},
		"both":              {"payees", obj{"values": []string{}, "data": 1}, "data"},
		"null in data":      {"payees", obj{"data": obj{"a": []any{1, nil}}}, "data.a[1]"},
		"no data":           {"payees", obj{"data": nil}, "data"},
		"a large number":    {"payees", obj{"data": obj{"a": obj{"b": 9007199254740992}}}, "data.a.b"},
		"deep data":         {"payees", obj{"data": json.RawMessage(strings.Repeat("[", 65) + strings.Repeat("]", 65))}, "data" + strings.Repeat("[0]", 64)},
		"large data":        {"payees", obj{"data": strings.Repeat("x", 1<<20)}, "data"},
		"a secret in data":  {"payees", obj{"data": obj{"a": []string{"ghp_" + strings.Repeat("A1b2C3", 6)}}}, "data.a[0]"},
		"a secret in a key": {"payees", obj{"data": obj{"ghp_" + strings.Repeat("A1b2C3", 6): 1}}, "data.[redacted:github-pat]"},
		"a secret":          {"payees", obj{"values": []string{"ghp_" + strings.Repeat("A1b2C3", 6)}}, "values[0]"},
	} {
		t.Run(name, func(t *testing.T) { h.do("PUT", "/v1/lists/"+tc.path, op, tc.body).wantField(tc.field) })
	}
}

// TestLists_TakeTenThousandValues checks that a list may have the maximum length. Such a list is
// larger than the limit of other bodies.
func TestLists_TakeTenThousandValues(t *testing.T) {
	h := start(t)
	values := make([]string, engine.MaxListValues)
	for i := range values {
		values[i] = fmt.Sprintf("payee-%05d-%s", i, strings.Repeat("x", 200))
	}
	h.do("PUT", "/v1/lists/payees", h.operator(acme), obj{"values": values}).wantStatus(http.StatusCreated)
}

// TestLists_AreInForceAtOnce checks that a changed list applies to decisions before the answer is
// sent. It tests conditions in every language.
func TestLists_AreInForceAtOnce(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Service.CompileRego = rego.CompileCondition
	})
	op := h.operator(acme)
	h.register(acme)
	for name, condition := range map[string]string{
		"match": `{"metadata.payee":{"$nin":{"list":"payees"}}}`,
		"tree":  `{"field":"metadata.payee","op":"notIn","value":{"list":"payees"}}`,
		"cel":   `{"cel":"!(intent.metadata.payee in list('payees'))"}`,
		"rego":  `{"rego":"not input.intent.metadata.payee in input.lists.payees"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": condition, "action": `{"decision":"deny"}`}).wantField("condition")
			h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{"bob"}})
			id := h.rule(acme, condition, `{"decision":"deny"}`)
			approved := func(want bool) {
				t.Helper()
				var got result
				if h.evaluate(acme, paying("eve")).wantStatus(http.StatusOK).into(&got); got.Approved != want {
					t.Errorf("approved = %v, want %v: %v", got.Approved, want, got.Reasons)
				}
			}
			approved(false)
			h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{"bob", "eve"}}).wantStatus(http.StatusOK)
			approved(true)
			h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{"bob"}}).wantStatus(http.StatusOK)
			approved(false)
			if p := h.do("DELETE", "/v1/lists/payees", op, nil).wantProblem(http.StatusConflict, codeListInUse); !strings.Contains(p.Detail, id) {
				t.Errorf("detail = %q, want the rule %s", p.Detail, id)
			}
			h.do("DELETE", "/v1/rules/"+id, op, nil).wantStatus(http.StatusNoContent)
			h.do("DELETE", "/v1/lists/payees", op, nil).wantStatus(http.StatusNoContent)
		})
	}
}

// TestLists_RulesThatChange checks that a changed rule may refer only to lists that exist. New
// rules have the same restriction.
func TestLists_RulesThatChange(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	id := h.rule(acme, "{}", `{"decision":"deny"}`)
	change := obj{"condition": `{"agent_id":{"$in":{"list":"trusted"}}}`}
	h.do("PATCH", "/v1/rules/"+id, op, change).wantField("condition")
	h.do("PUT", "/v1/lists/trusted", op, obj{"values": []string{"a"}}).wantStatus(http.StatusCreated)
	h.do("PATCH", "/v1/rules/"+id, op, change).wantStatus(http.StatusOK)
	h.do("PATCH", "/v1/rules/"+id, op, obj{"isActive": false}).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/lists/trusted", op, nil).wantProblem(http.StatusConflict, codeListInUse)
}

// TestLists_AnotherSpellingOfTheNameKeepsTheList checks that a list cannot be deleted while a rule
// refers to it, even if the rule spells the list's name with escapes.
func TestLists_AnotherSpellingOfTheNameKeepsTheList(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.do("PUT", "/v1/lists/trusted", op, obj{"values": []string{"a"}}).wantStatus(http.StatusCreated)
	h.rule(acme, `{"agent_id":{"$in":{"l\u0069st":"tr\u0075sted"}}}`, `{"decision":"deny"}`)
	h.do("DELETE", "/v1/lists/trusted", op, nil).wantProblem(http.StatusConflict, codeListInUse)
}

// TestLists_Documents checks that Rego reads a list's document as it is now, and that a list in which rules look
// for texts does not become another document.
func TestLists_Documents(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.CompileRego = rego.CompileCondition })
	op := h.operator(acme)
	h.register(acme)
	const path = "/v1/lists/limits"
	condition := `{"rego":"data.lists.limits[input.intent.metadata.payee].blocked"}`
	h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": condition, "action": `{"decision":"deny"}`}).wantField("condition")
	got := read[engine.List](h.do("PUT", path, op, obj{"data": json.RawMessage(`{"eve": {"blocked": true, "a": 1.50}, "bob": {}}`)}).wantStatus(http.StatusCreated))
	want := engine.List{Name: "limits", Data: []byte(`{"bob":{},"eve":{"a":1.5,"blocked":true}}`), Version: 1, CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now()}
	same(t, "created", want, got)
	same(t, "GET", want, read[engine.List](h.do("GET", path, op, nil).wantStatus(http.StatusOK)))
	h.do("PUT", path, op, obj{"data": json.RawMessage(`{"bob": {}, "eve": {"blocked": true, "a": 1.5}}`)}).wantStatus(http.StatusOK).into(&got)
	same(t, "put again", want, got)
	all := read[page[namedSummary]](h.do("GET", "/v1/lists", op, nil).wantStatus(http.StatusOK))
	same(t, "GET /v1/lists", []namedSummary{{"limits", 1, 2, want.CreatedAt, want.UpdatedAt}}, all.Data)
	id := h.rule(acme, condition, `{"decision":"deny"}`)
	approved := func(want bool) {
		t.Helper()
		var got result
		if h.evaluate(acme, paying("eve")).wantStatus(http.StatusOK).into(&got); got.Approved != want {
			t.Errorf("approved = %v, want %v: %v", got.Approved, want, got.Reasons)
		}
	}
	approved(false)
	h.do("PUT", path, op, obj{"data": obj{"eve": obj{}}}).wantStatus(http.StatusOK)
	approved(true)
	h.do("PUT", path, op, obj{"data": obj{"eve": obj{"blocked": true}}}).wantStatus(http.StatusOK)
	approved(false)
	if p := h.do("DELETE", path, op, nil).wantProblem(http.StatusConflict, codeListInUse); !strings.Contains(p.Detail, id) {
		t.Errorf("detail = %q, want the rule %s", p.Detail, id)
	}

	texts := `{"metadata.payee":{"$in":{"list":"limits"}}}`
	h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": texts, "action": `{"decision":"deny"}`}).wantField("condition")
	h.do("PUT", path, op, obj{"data": []string{"eve", "bob"}}).wantStatus(http.StatusOK)
	approved(true) // the condition in Rego has no value
	id = h.rule(acme, texts, `{"decision":"deny"}`)
	approved(false)
	if p := h.do("PUT", path, op, obj{"data": []any{"eve", 1}}).wantProblem(http.StatusConflict, codeListInUse); !strings.Contains(p.Detail, id) {
		t.Errorf("detail = %q, want the rule %s", p.Detail, id)
	}
	h.do("PUT", path, op, obj{"values": []string{"bob"}}).wantStatus(http.StatusOK)
	approved(true)
}

func TestLists_Simulate(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	body := obj{
		"policy": policy(acme), "intent": paying("eve")["intent"],
		"rules": []any{obj{"name": "n", "condition": `{"metadata.payee":{"$nin":{"list":"payees"}}}`, "action": `{"decision":"deny"}`}},
	}
	h.do("POST", "/v1/policy/simulate", op, body).wantField("condition")
	h.do("PUT", "/v1/lists/payees", op, obj{"values": []string{"bob"}}).wantStatus(http.StatusCreated)
	var got struct {
		Decision string `json:"decision"`
	}
	if h.do("POST", "/v1/policy/simulate", op, body).wantStatus(http.StatusOK).into(&got); got.Decision != "deny" {
		t.Errorf("decision = %s, want deny", got.Decision)
	}
}
