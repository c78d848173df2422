package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// module returns the body of a library with one file.
func module(name, source string) obj {
	return obj{"modules": obj{name + ".rego": "package lib." + name + "\n\n" + source}}
}

const payeesLibrary = `ours(payee) if payee in {"a", "b"}`

// denying returns the body of a rule that denies where a condition in Rego holds.
func denying(t *testing.T, source string) obj {
	t.Helper()
	condition, err := json.Marshal(map[string]string{"rego": source})
	if err != nil {
		t.Fatal(err)
	}
	return obj{"name": "n", "condition": string(condition), "action": `{"decision":"deny"}`}
}

func TestLibraries_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	body := module("pay", payeesLibrary)
	got := read[engine.Library](h.do("PUT", "/v1/libraries/pay", op, body).wantStatus(http.StatusCreated))
	want := engine.Library{
		Name: "pay", Modules: map[string]string{"pay.rego": "package lib.pay\n\n" + payeesLibrary},
		Version: 1, CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now(),
	}
	same(t, "created", want, got)
	h.clock.advance(time.Minute)
	same(t, "the same modules", want, read[engine.Library](h.do("PUT", "/v1/libraries/pay", op, body).wantStatus(http.StatusOK)))
	want.Modules, want.Version, want.UpdatedAt = map[string]string{"x.rego": "package lib.pay"}, 2, h.clock.Now()
	same(t, "changed", want, read[engine.Library](h.do("PUT", "/v1/libraries/pay", op, obj{"modules": want.Modules}).wantStatus(http.StatusOK)))
	same(t, "GET", want, read[engine.Library](h.do("GET", "/v1/libraries/pay", op, nil).wantStatus(http.StatusOK)))
	all := read[page[namedSummary]](h.do("GET", "/v1/libraries", op, nil).wantStatus(http.StatusOK))
	same(t, "GET /v1/libraries", []namedSummary{{"pay", 2, 1, want.CreatedAt, want.UpdatedAt}}, all.Data)
	other := h.operator("globex")
	for _, method := range []string{"GET", "DELETE"} {
		h.do(method, "/v1/libraries/pay", other, nil).wantProblem(http.StatusNotFound, "library_not_found")
	}
	h.do("DELETE", "/v1/libraries/pay", op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/libraries/pay", op, nil).wantProblem(http.StatusNotFound, "library_not_found")
}

func TestLibraries_IfMatch(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	const path = "/v1/libraries/pay"
	refused := func(method string, body any, header, value string) {
		t.Helper()
		h.do(method, path, op, body, header, value).wantProblem(http.StatusPreconditionFailed, codeLibraryChanged)
	}
	refused("PUT", module("pay", "a := 1"), "If-Match", "*")
	l := read[engine.Library](h.do("PUT", path, op, module("pay", "a := 1"), "If-None-Match", "*").wantStatus(http.StatusCreated))
	refused("PUT", module("pay", "a := 1"), "If-None-Match", "*")
	first := `"` + l.UpdatedAt.Format(time.RFC3339Nano) + `"`
	h.clock.advance(time.Millisecond)
	h.do("PUT", path, op, module("pay", "a := 2"), "If-Match", first).wantStatus(http.StatusOK)
	refused("PUT", module("pay", "a := 3"), "If-Match", first)
	refused("DELETE", nil, "If-Match", first)
	h.do("DELETE", path, op, nil, "If-Match", "*").wantStatus(http.StatusNoContent)
}

func TestLibraries_Invalid(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	h.do("PUT", "/v1/libraries/b", op, module("b", "import data.lib.c\n\nf(x) := c.g(x)")).wantField("modules.b.rego")
	h.do("PUT", "/v1/libraries/c", op, module("c", "g(x) := x\n\nh(x) := x")).wantStatus(http.StatusCreated)
	h.do("PUT", "/v1/libraries/b", op, module("b", "import data.lib.c\n\nf(x) := c.g(x)")).wantStatus(http.StatusCreated)
	many := obj{}
	for i := range engine.MaxLibraryModules + 1 {
		many[fmt.Sprintf("m%d.rego", i)] = "package lib.a"
	}
	for name, tc := range map[string]struct {
		path  string
		body  any
		field string
	}{
		"no modules":          {"a", obj{}, "modules"},
		"null":                {"a", obj{"modules": nil}, "modules"},
		"none":                {"a", obj{"modules": obj{}}, "modules"},
		"too many":            {"a", obj{"modules": many}, "modules"},
		"too large":           {"a", module("a", "# "+strings.Repeat("x", engine.MaxLibraryBytes)), "modules"},
		"a path":              {"a", obj{"modules": obj{"../a.rego": "package lib.a"}}, "modules"},
		"no Rego file":        {"a", obj{"modules": obj{"a.txt": "package lib.a"}}, "modules"},
		"a test":              {"a", obj{"modules": obj{"a_test.rego": "package lib.a"}}, "modules"},
		"an empty file":       {"a", obj{"modules": obj{"a.rego": " "}}, "modules.a.rego"},
		"another package":     {"a", module("b", ""), "modules.b.rego"},
		"a capital":           {"A", module("A", ""), "name"},
		"a name with a dash":  {"a-b", module("a", ""), "name"},
		"another member":      {"a", obj{"modules": obj{"a.rego": "package lib.a"}, "name": "a"}, "name"},
		"a syntax error":      {"a", module("a", "f("), "modules.a.rego"},
		"a cycle":             {"c", module("c", "g(x) := x\n\nh(x) := data.lib.b.f(x)"), "modules"},
		"a cycle with itself": {"a", module("a", "f(x) := data.lib.a.f(x)"), "modules.a.rego"},
		"what another needs":  {"c", module("c", "h(x) := x"), "modules"},
		"network":             {"a", module("a", `f := http.send({"method": "GET", "url": "http://x"})`), "modules.a.rego"},
		"a secret":            {"a", module("a", `k := "ghp_`+strings.Repeat("A1b2C3", 6)+`"`), "modules.a.rego"},
	} {
		t.Run(name, func(t *testing.T) { h.do("PUT", "/v1/libraries/"+tc.path, op, tc.body).wantField(tc.field) })
	}
	h.do("GET", "/v1/libraries/a", op, nil).wantStatus(http.StatusNotFound)
}

// TestLibraries_AreBoundedTogether checks that an organization has room for a few of the largest
// libraries only.
func TestLibraries_AreBoundedTogether(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	for i := range 5 {
		name := fmt.Sprint("l", i)
		r := h.do("PUT", "/v1/libraries/"+name, op, module(name, "# "+strings.Repeat("x", engine.MaxLibraryBytes-100)))
		if i < 4 {
			r.wantStatus(http.StatusCreated)
		} else {
			r.wantField("modules")
		}
	}
}

// TestLibraries_AreInForceAtOnce checks that a changed library applies to decisions before the answer
// is sent, through other libraries, too. A change that breaks a rule changes nothing.
func TestLibraries_AreInForceAtOnce(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.CompileRego = rego.CompileCondition })
	op := h.operator(acme)
	h.register(acme)
	rule := denying(t, "package team\n\nimport data.lib.pay\n\nmatch if pay.bad(input.intent.metadata.payee)")
	h.do("POST", "/v1/rules", op, rule).wantField("condition")
	h.do("PUT", "/v1/libraries/people", op, module("people", `ours := {"a"}`)).wantStatus(http.StatusCreated)
	h.do("PUT", "/v1/libraries/pay", op, module("pay", "import data.lib.people\n\nbad(p) if not p in people.ours")).wantStatus(http.StatusCreated)
	id := read[engine.Rule](h.do("POST", "/v1/rules", op, rule).wantStatus(http.StatusCreated)).ID
	decides := func(payee string, want bool) {
		t.Helper()
		var got result
		if h.evaluate(acme, paying(payee)).wantStatus(http.StatusOK).into(&got); got.Approved != want {
			t.Errorf("a payment to %s is approved: %v, want %v: %v", payee, got.Approved, want, got.Reasons)
		}
	}
	decides("a", true)
	decides("b", false)
	h.do("PUT", "/v1/libraries/people", op, module("people", `ours := {"b"}`)).wantStatus(http.StatusOK)
	decides("a", false)
	decides("b", true)
	p := h.do("PUT", "/v1/libraries/pay", op, module("pay", "worse(p) if p")).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if text := fmt.Sprint(p.Errors); !strings.Contains(text, id) {
		t.Errorf("the problem does not name the rule: %s", text)
	}
	decides("a", false)
	decides("b", true)
	for name, user := range map[string]string{"people": "the library pay", "pay": id} {
		if p := h.do("DELETE", "/v1/libraries/"+name, op, nil).wantProblem(http.StatusConflict, codeLibraryInUse); !strings.Contains(p.Detail, user) {
			t.Errorf("the problem of deleting %s does not name %s: %s", name, user, p.Detail)
		}
	}
	h.do("PATCH", "/v1/rules/"+id, op, obj{"isActive": false}).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/libraries/pay", op, nil).wantProblem(http.StatusConflict, codeLibraryInUse)
	h.do("POST", "/v1/policy/simulate", op, obj{"intent": paying("a")["intent"], "rules": []any{rule}}).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/rules/"+id, op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/libraries/people", op, nil).wantProblem(http.StatusConflict, codeLibraryInUse)
	h.do("DELETE", "/v1/libraries/pay", op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/libraries/people", op, nil).wantStatus(http.StatusNoContent)
}

// TestLibraries_AreFollowed checks that a function of a library may not come to read what the input never
// has where a stored rule gives it the input.
func TestLibraries_AreFollowed(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	const good, bad = `f(i) if i.action_type == "x"`, `f(i) if i.actiontype == "x"`
	h.do("PUT", "/v1/libraries/x", op, module("x", good)).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/rules", op, denying(t, "data.lib.x.f(input.intent)")).wantStatus(http.StatusCreated)
	h.do("PUT", "/v1/libraries/x", op, module("x", bad)).wantField("modules")
	h.do("PUT", "/v1/libraries/y", op, module("y", bad)).wantStatus(http.StatusCreated) // nobody gives it the input
	h.do("POST", "/v1/rules", op, denying(t, "data.lib.y.f(input.intent)")).wantField("condition")
	h.do("PUT", "/v1/libraries/z", op, module("z", "z if data.lib.y.f(input.intent)")).wantField("modules")
}

// TestLibraries_RaceWithRules stores and deletes a library while rules that import it are created and
// changed. In every order, each stored rule must compile with the stored libraries.
func TestLibraries_RaceWithRules(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	put := func(function string) {
		h.do("PUT", "/v1/libraries/pay", op, module("pay", function+"(p) if p == \"a\""))
	}
	put("one")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 8 {
				switch (i + j) % 4 {
				case 0:
					put("one")
				case 1:
					put("two")
				case 2:
					h.do("DELETE", "/v1/libraries/pay", op, nil)
				}
				function := []string{"one", "two"}[(i+j)%2]
				r := h.do("POST", "/v1/rules", op, denying(t, "data.lib.pay."+function+"(input.intent.metadata.payee)"))
				if r.status == http.StatusCreated && j%2 == 0 {
					h.do("DELETE", "/v1/rules/"+read[engine.Rule](r).ID, op, nil).wantStatus(http.StatusNoContent)
				}
			}
		})
	}
	all.Wait()
	set, err := h.server.cfg.Decisions.Sets.Rules(t.Context(), nil, acme)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range set.Broken() {
		t.Errorf("a stored rule does not compile: %v", broken.Err)
	}
}
