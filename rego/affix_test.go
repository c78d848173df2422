package rego

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// openPolicy allows everything to everybody, so that rules alone decide.
func openPolicy() *engine.ActionPolicy {
	p := samplePolicy()
	p.AgentID, p.MaxCostMinor, p.Currency = "**", nil, ""
	p.AllowedActionTypes, p.DeniedActionTypes = []string{"*"}, nil
	p.AllowedResourcePatterns, p.BlockedResourcePatterns = nil, nil
	return p
}

// TestLower_GlobsWithOneStarMeanTheSame checks that a glob with one star at an end, which an export
// writes as startswith or endswith, matches what writ's glob matches. All rules are in one export, so
// OPA's index of rules leaves out none that matches.
func TestLower_GlobsWithOneStarMeanTheSame(t *testing.T) {
	g := newGenerator(7)
	literal := func() string {
		return g.one("a", "b") + g.text(3, "a", "b", "/", "a/b", ".", "-", "%2F", "%", "é", "A")
	}
	glob := func(star string) string {
		if g.chance(50) {
			return star + literal()
		}
		return literal() + star
	}
	var rules []engine.Rule
	for i := range 240 {
		field := g.one("action_type", "agent_id", "metadata.k", "metadata.k", "cost.currency")
		patterns := make([]string, 1+g.r.IntN(3)*g.r.IntN(2))
		for i := range patterns {
			if patterns[i] = glob(g.one("*", "**")); field == "action_type" {
				patterns[i] = glob("*")
			} else if g.chance(20) {
				patterns[i] = strings.Replace(patterns[i], "a", `\*`, 1)
			}
		}
		condition := fmt.Sprintf(`{%q: {"$glob": %s}}`, field, must.Get(json.Marshal(patterns))(t))
		switch g.r.IntN(5) {
		case 0:
			condition = fmt.Sprintf(`{"$nor": [%s]}`, condition)
		case 1:
			condition = fmt.Sprintf(`{"$and": [%s, {"issued_at": {"$gt": "2000-01-01T00:00:00Z"}}]}`, condition)
		}
		action := g.one("deny", "allow", "approval_required")
		rules = append(rules, sampleRule(fmt.Sprintf("rule-%03d", i), fmt.Sprint("Rule ", i), condition, `{"decision": "`+action+`"}`))
	}
	all := engine.CompileRules(rules, engine.Options{})
	for _, broken := range all.Broken() {
		t.Fatal(broken)
	}
	policy := must.Get(engine.CompilePolicy(openPolicy()))(t)
	var alone []*engine.RuleSet
	for _, r := range all.Rules() {
		alone = append(alone, engine.CompileRules([]engine.Rule{r.Rule()}, engine.Options{}))
	}
	query := must.Get(Prepare(openPolicy(), rules, nil))(t)
	matching := must.Get(prepare(query.codes.compiler, document(openPolicy(), "matching_rules"), 100))(t)
	compared, matched := 0, 0
	for range 150 {
		text := func() string { return g.text(6, "a", "b", "/", ".", "-", "%2F", "%", "é", "A", "*", "a/b") }
		in := &engine.Input{DecidedAt: time.Unix(1, 0), Intent: &engine.Intent{
			IntentID: "i", PolicyID: policyID, ActionType: "a" + text(), AgentID: "b" + text(), Resource: "r",
			IssuedAt: "2026-01-02T00:00:00Z", Metadata: map[string]string{"k": text()},
		}}
		if g.chance(80) {
			in.Intent.Cost = &engine.Cost{Currency: "a" + text()}
		}
		got := make(map[string]bool)
		v := must.Get(matching.ask(must.Get(Input(openPolicy(), in))(t), inTime(time.Now, time.Minute)))(t)
		for _, rule := range v.(ast.Set).Slice() {
			got[rule.Value.(*ast.Array).Elem(0).String()] = true
		}
		for i, r := range all.Rules() {
			in.Trace = &engine.Trace{}
			engine.Evaluate(policy, alone[i], in)
			want := in.Trace.Rules[0].Verdict == engine.Matched
			if got := got[fmt.Sprint(i+1)]; got != want {
				t.Errorf("%s of %s: Rego says %v, the engine %v", r.Rule().Condition+r.Rule().Action, marshal(in.Intent), got, want)
			}
			if compared++; want {
				matched++
			}
		}
	}
	if matched < compared/100 {
		t.Errorf("%d of %d matched: too few", matched, compared)
	}
}

// indexedConditions are conditions that OPA's index of rules must tell apart, by a name for each.
var indexedConditions = map[string]string{
	"action=prefix":   `{"action_type": "svc%d.*"}`,
	"action=suffix":   `{"action_type": "*.svc%d"}`,
	"action=list":     `{"action_type": {"$glob": ["svc%[1]d.*", "srv%[1]d.*"]}}`,
	"metadata=prefix": `{"metadata.env": "env%d-*"}`,
	"metadata=suffix": `{"metadata.env": "**-env%d"}`,
	"agent=prefix":    `{"agent_id": "team%d/*"}`,
	"agent=suffix":    `{"agent_id": "**-%d"}`,
	"agent=name":      `{"agent_id": "agent-%d"}`,
}

func indexedRules(condition string, n int) []engine.Rule {
	rules := make([]engine.Rule, n)
	for i := range rules {
		rules[i] = sampleRule(fmt.Sprintf("rule-%04d", i), fmt.Sprint("Rule ", i), fmt.Sprintf(condition, i), `{"decision": "deny"}`)
	}
	return rules
}

func indexedInput(p *engine.ActionPolicy) *engine.Input {
	in := coreInput(p)
	in.Intent.Metadata = map[string]string{"env": "prod"}
	return in
}

// TestLower_OPAsIndexFindsGlobs checks that OPA does not evaluate a rule whose glob surely does not
// match.
func TestLower_OPAsIndexFindsGlobs(t *testing.T) {
	for name, condition := range indexedConditions {
		query := must.Get(Prepare(openPolicy(), indexedRules(condition, 100), nil))(t)
		input := must.Get(Input(openPolicy(), indexedInput(openPolicy())))(t)
		index := query.codes.compiler.RuleIndex(document(openPolicy(), "matching_rules"))
		found := must.Get(index.Lookup(resolver{input}))(t)
		if n := len(found.Rules); n > 0 {
			t.Errorf("%s: OPA evaluates %d of 100 rules, want 0", name, n)
		}
	}
}

// resolver resolves references into an input.
type resolver struct{ input ast.Value }

func (r resolver) Resolve(ref ast.Ref) (ast.Value, error) {
	v, err := r.input.Find(ref[1:])
	if err != nil {
		return nil, nil //nolint:nilerr // a missing member is undefined
	}
	return v, nil
}

// BenchmarkExported evaluates exports in OPA's own Go library, as an OPA that has loaded them does.
func BenchmarkExported(b *testing.B) {
	for _, name := range slices.Sorted(maps.Keys(indexedConditions)) {
		condition := indexedConditions[name]
		for _, n := range []int{10, 1000} {
			b.Run(fmt.Sprintf("%s/rules=%d", name, n), func(b *testing.B) {
				options := []func(*opa.Rego){opa.Query("data." + PackageName(policyID) + ".decision")}
				for _, f := range must.Get(Lower(openPolicy(), indexedRules(condition, n), nil))(b) {
					options = append(options, opa.Module(f.Name, f.Source))
				}
				query := must.Get(opa.New(options...).PrepareForEval(b.Context()))(b)
				input := opa.EvalParsedInput(must.Get(Input(openPolicy(), indexedInput(openPolicy())))(b))
				for b.Loop() {
					got, err := query.Eval(b.Context(), input)
					if err != nil || got[0].Expressions[0].Value != "allow" {
						b.Fatalf("Eval = %v, %v, want allow", got, err)
					}
				}
			})
		}
	}
}
