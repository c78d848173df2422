package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/util"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

func jsonList(name, data string) engine.List { return engine.List{Name: name, Data: []byte(data)} }

func documentRule(t *testing.T, source string) engine.Rule {
	t.Helper()
	return listRule(string(must.Get(json.Marshal(map[string]string{"rego": source}))(t)), "deny")
}

func TestCompileCondition_Documents(t *testing.T) {
	for _, tt := range []struct {
		source string
		names  []string
		wrong  string
	}{
		{source: `data.lists.limits.eu > 1; data.lists["a-b"][0]`, names: []string{"a-b", "limits"}},
		{source: "package p\n\nimport data.lists.limits as l\nimport data.lists\n\nmatch if lists.eu.max == l.max", names: []string{"eu", "limits"}},
		{source: `true`},
		{source: "package lists\n\nx := 1\n\nmatch if data.lists.x == 1"}, // its own
		{source: `count(data.lists) > 0`, wrong: `1:7: data.lists must name one list`},
		{source: `some name; data.lists[name] == 1`, wrong: "must name one list"},
		{source: `data.lists.Limits == 1`, wrong: "the name of a list has"},
		{source: `data.limits == 1`, wrong: "data.limits is not defined here"},
		{source: `x := data.lists.limits with data.lists.limits as 1; x == 1`, wrong: "with replaces data.lists in tests"},
		{source: `x := data.lists.a with data as {}; x == 1`, wrong: "data is not defined here"},
	} {
		c, err := CompileCondition(tt.source)
		switch {
		case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
			t.Errorf("CompileCondition(%s) = %v, want %s", tt.source, err, tt.wrong)
		case tt.wrong == "" && err != nil:
			t.Errorf("CompileCondition(%s) = %v", tt.source, err)
		case err == nil && !slices.Equal(c.Documents(), tt.names):
			t.Errorf("%s names %v, want %v", tt.source, c.Documents(), tt.names)
		}
	}
}

// documentConditions read the documents a and b, and the texts payees.
var documentConditions = []string{
	`data.lists.a == data.lists.b`,
	`data.lists.a.k == data.lists.b.k`,
	`data.lists.a.k.k == "bob"`,
	`not data.lists.a.k.k`,
	`data.lists.a[0] == data.lists.b[0]`,
	`data.lists.a.k[0] < 2`,
	`input.intent.metadata.to in data.lists.a`,
	`input.intent.metadata.to in data.lists.a.k`,
	`data.lists.a[input.intent.metadata.to]`,
	`data.lists.a[input.intent.metadata.to].k > 0`,
	`some k, v in data.lists.a; data.lists.b[k] == v`,
	`some i; data.lists.a[i] == data.lists.b[i]`,
	`every x in data.lists.a { x != "bob" }`,
	`count(data.lists.a) > 2`,
	`object.get(data.lists.a, "k", 0) == 0`,
	`object.get(data.lists.a, ["k", "k"], 0) == 0`,
	`{x | some x in data.lists.a} == {x | some x in data.lists.b}`,
	`walk(data.lists.a, [path, "bob"]); count(path) > 1`,
	`json.marshal(data.lists.a) == json.marshal(data.lists.b)`,
	`data.lists.payees == ["bob", "carol"]`,
	`input.intent.metadata.to in data.lists.payees; not data.lists.a.none`,
	`x := data.lists.a.k with input as {}; x == data.lists.a.k`,
	"package team\n\nimport data.lists\nimport data.lists.a\n\ndefault match := false\n\nmatch if lists.b.k == a.k\n\nmatch if data.lists.a.k > 1",
	"package team\n\ndeny contains sprintf(\"%v\", [x]) if some x in data.lists.a.k",
	"package team\n\npick(d) := d.k\n\nmatch if pick(data.lists.a) == pick(data.lists.b)",
}

// aDocument returns a random document whose parts are often those that documentConditions look for. It has
// no key "0": data.x[0] finds it in an OPA, whose store has paths of texts, though x["0"] is another value.
func aDocument(n *rand.Rand, depth int) any {
	switch kind := n.IntN(9); {
	case depth == 0 || kind < 4:
		return []any{"bob", "dave", true, false, n.IntN(3), 1.5, ""}[n.IntN(7)]
	case kind < 6:
		all := make([]any, n.IntN(4))
		for i := range all {
			all[i] = aDocument(n, depth-1)
		}
		return all
	}
	all := make(map[string]any)
	for range n.IntN(4) {
		all[[]string{"k", "bob", "x", "y"}[n.IntN(4)]] = aDocument(n, depth-1)
	}
	return all
}

// TestDocuments_AsInOPA checks that conditions find in documents what they find in an OPA that holds the
// same data, and that exports do.
func TestDocuments_AsInOPA(t *testing.T) {
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	matched := 0
	for seed := range uint64(4) {
		n := rand.New(rand.NewPCG(seed, 1))
		a := string(must.Get(json.Marshal(aDocument(n, 3)))(t))
		b := a
		if n.IntN(3) > 0 {
			b = string(must.Get(json.Marshal(aDocument(n, 3)))(t))
		}
		all := []engine.List{jsonList("a", a), jsonList("b", b), {Name: "payees", Values: []string{"bob", "carol"}}}
		lists := engine.CompileLists(all)
		var data map[string]any
		must.Do(t, util.UnmarshalJSON(fmt.Appendf(nil, `{"lists":{"a":%s,"b":%s,"payees":["bob","carol"]}}`, a, b), &data))
		for _, source := range documentConditions {
			rule := documentRule(t, source)
			set := engine.CompileRules([]engine.Rule{rule}, engine.Options{CompileRego: CompileCondition, Lists: lists})
			for _, broken := range set.Broken() {
				t.Fatal(source, broken.Err)
			}
			in := listInput()
			result := engine.Evaluate(policy, set, in)
			if result.ConditionErrors.Total() > 0 {
				continue // the type of a value does not fit a function
			}
			m := must.Get(parseCondition(source))(t)
			input := must.Get(conditionInput(&engine.RegoInput{Intent: in.Intent, Policy: samplePolicy()}, nil))(t)
			query := m.Package.Path.String() + "." + entryOf(m)
			found := must.Get(opa.New(opa.Query(query), opa.ParsedModule(m), opa.ParsedInput(input),
				opa.Store(inmem.NewFromObject(data))).Eval(t.Context()))(t)
			want := engine.Allow
			if len(found) > 0 {
				if v := found[0].Expressions[0].Value; v == true || fmt.Sprint(v) != "[]" && v != false {
					want, matched = engine.Deny, matched+1
				}
			}
			if result.Decision != want {
				t.Errorf("a := %s; b := %s; %s: Evaluate = %v, want %v as in OPA", a, b, source, result.Decision, want)
			}
			q := must.Get(Prepare(samplePolicy(), []engine.Rule{rule}, lists))(t)
			got, codes, err := q.Evaluate(in)
			if err != nil || got != want || !cmp.Equal(codes, codesOf(result)) {
				t.Errorf("a := %s; b := %s; %s: the export decides %v, %v, %v, want %v", a, b, source, got, codes, err, want)
			}
		}
	}
	if matched < 10 {
		t.Errorf("only %d conditions matched", matched)
	}
}

// TestDocuments_AreCharged checks that reading a document is work, and that a condition that reads a large one
// too often is an error.
func TestDocuments_AreCharged(t *testing.T) {
	big := jsonList("big", "["+strings.Repeat(`"0123456789",`, 50_000)+`"x"]`)
	lists := engine.CompileLists([]engine.List{big})
	for _, source := range []string{
		`some i, j; data.lists.big[i] == data.lists.big[j]; i != j; false`,
		`some x in data.lists.big; some y in data.lists.big; x == concat("", [y, "z"])`,
		strings.Repeat(`json.marshal(data.lists.big) != ""; `, 200) + "true",
		strings.Repeat(`not "y" in data.lists.big; `, 200) + "true",
	} {
		c := must.Get(CompileCondition(source))(t)
		_, err := c.Match(&engine.RegoInput{Intent: listInput().Intent, Policy: samplePolicy(), Lists: lists})
		if !errors.Is(err, condition.ErrTooMuchWork) {
			t.Errorf("%.60s: Match = %v, want %v", source, err, condition.ErrTooMuchWork)
		}
	}
}

// TestDocuments_LookUpsAreCheap checks that looking up a key costs no more in a large document.
func TestDocuments_LookUpsAreCheap(t *testing.T) {
	work := func(n int, source string) int {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"team-%d":{"max":7},`, i)
		}
		lists := engine.CompileLists([]engine.List{jsonList("limits", "{"+b.String()+`"bob":{"max":7}}`)})
		c, left := must.Get(CompileCondition(source))(t), new(condition.Work)
		matches, err := c.Match(&engine.RegoInput{Intent: listInput().Intent, Policy: samplePolicy(), Lists: lists, Work: left})
		if !matches || err != nil {
			t.Errorf("%s with %d teams: Match = %v, %v", source, n, matches, err)
		}
		return left.Left()
	}
	for _, source := range []string{
		`data.lists.limits[input.intent.metadata.to].max == 7`,
		`data.lists.limits["bob"].max > 6`,
		`some who in ["bob"]; data.lists.limits[who].max == 7; not data.lists.limits[who].min`,
		`l := data.lists.limits; team := l[input.intent.metadata.to]; team.max == 7`,
		"package p\n\nimport data.lists.limits\n\nmatch if limits[input.intent.metadata.to].max == 7",
	} {
		if few, many := work(10, source), work(10_000, source); few != many {
			t.Errorf("%s: %d steps are left with 10 teams, %d with 10,000", source, few, many)
		}
	}
}

// TestDocuments_ThatAreNotThereTighten checks that a missing document is an error, also where the condition
// would hold without it, and so are texts that are another document.
func TestDocuments_ThatAreNotThereTighten(t *testing.T) {
	lists := engine.CompileLists([]engine.List{jsonList("doc", `{"k":1}`)})
	policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
	for _, doc := range []string{
		`{"rego":"not data.lists.gone.x"}`, `{"rego":"not input.intent.metadata.to in input.lists.doc"}`,
		`{"metadata.to":{"$nin":{"list":"doc"}}}`, `{"cel":"!(intent.metadata.to in list('doc'))"}`,
	} {
		for outcome, want := range map[string]engine.Decision{"allow": engine.Allow, "deny": engine.Deny} {
			rs := engine.CompileRules([]engine.Rule{listRule(doc, outcome)}, engine.Options{CompileRego: CompileCondition, Lists: lists})
			got := engine.Evaluate(policy, rs, listInput())
			if got.Decision != want || got.ConditionErrors.Total() != 1 {
				t.Errorf("%s %s: Evaluate = %v with %d errors, want %v with one", outcome, doc, got.Decision, got.ConditionErrors.Total(), want)
			}
		}
	}
}

// TestDocuments_OfACore checks that a core decides nothing while another document is in force.
func TestDocuments_OfACore(t *testing.T) {
	rules := []engine.Rule{documentRule(t, `data.lists.limits[input.intent.metadata.to] > 1`)}
	policies := []*engine.ActionPolicy{samplePolicy()}
	lists := func(data string) condition.Lists { return engine.CompileLists([]engine.List{jsonList("limits", data)}) }
	files := must.Get(LowerCore(policies, rules, lists(`{"bob":2}`)))(t)
	got, _ := askCore(t, files, coreQuestion(t, samplePolicy(), rules, lists(`{"bob":2}`), listInput())).(map[string]any)
	if got["decision"] != "deny" {
		t.Errorf("the core decides %v, want deny", got["decision"])
	}
	for _, data := range []string{`{"bob":1}`, `{"bob":"2"}`, `{}`, `["bob"]`} {
		if got := askCore(t, files, coreQuestion(t, samplePolicy(), rules, lists(data), listInput())); got != nil {
			t.Errorf("%s: the core decides %v, want nothing", data, got)
		}
	}
	if got := askCore(t, files, coreQuestion(t, samplePolicy(), rules, nil, listInput())); got != nil {
		t.Errorf("no list: the core decides %v, want nothing", got)
	}
}
