package engine

import (
	"flag"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
)

var indexCases = flag.Int("index-cases", 20_000, "how many intents the index is tried on")

// withoutIndex returns a copy of rs that always evaluates every rule.
func withoutIndex(rs *RuleSet) *RuleSet {
	always := make(bitset, (len(rs.rules)+63)/64)
	for i := range rs.rules {
		always.add(i)
	}
	return &RuleSet{rules: rs.rules, index: ruleIndex{always: always}}
}

// TestDecision_Rules_IndexNeverChangesAnOutcome checks that the finding and the number of errors
// are the same with and without the index.
func TestDecision_Rules_IndexNeverChangesAnOutcome(t *testing.T) {
	const intentsPerSet = 50
	asked, matched, failed := 0, 0, 0
	for seed := range *indexCases / intentsPerSet {
		g := newGenerator(uint64(seed))
		rules := make([]Rule, 1+g.IntN(30))
		for i := range rules {
			rules[i] = g.rule(i)
		}
		rs := CompileRules(rules, stubOptions())
		plain := withoutIndex(rs)
		for range intentsPerSet {
			in := g.intent()
			f := testEvaluation(t, in)
			got, gotErrs := rs.decide(f)
			if f.Reading().Text != in.Resource {
				t.Fatalf("decide left the resource %q, want %q", f.Reading().Text, in.Resource)
			}
			want, wantErrs := plain.decide(f)
			if diff := cmp.Diff(want, got); diff != "" || gotErrs != wantErrs {
				t.Fatalf("seed %d: decide(%+v) = errors %v, want %v; findings (-unindexed +indexed):\n%s", seed, in, gotErrs, wantErrs, diff)
			}
			asked++
			matched += len(got)
			failed += gotErrs.Total()
		}
	}
	if matched < asked/10 || matched > asked*99/100 || failed < asked/100 {
		t.Errorf("%d of %d intents matched with %d errors: the cases say too little", matched, asked, failed)
	}
}

func TestIndex_Demands(t *testing.T) {
	tests := []struct {
		name string
		doc  string
		want string
	}{
		{"equality", `{"action_type":"deploy"}`, "action_type=[deploy]"},
		{"$in", `{"action_type":{"$in":["a","b"]}}`, "action_type=[a b]"},
		{"alternatives on one field", `{"$or":[{"metadata.env":"a"},{"metadata.env":"b","agent_id":"x"}]}`, "metadata.env=[a b]"},
		{"alternatives on two fields", `{"$or":[{"metadata.env":"a"},{"agent_id":"x"}]}`, ""},
		{"one of many", `{"cost.amount_minor":{"$gt":1},"cost.currency":"EUR"}`, "cost.currency=[EUR]"},
		{"negation", `{"action_type":{"$ne":"x"}}`, ""},
		{"double negation", `{"$nor":[{"action_type":{"$ne":"x"}}]}`, "action_type=[x]"},
		{"a demanded absence", `{"metadata.env":{"$exists":false}}`, "metadata.env=[] or absent"},
		{"value or absence", `{"metadata.env":{"$nin":["x"]},"$or":[{"metadata.env":{"$exists":false}},{"metadata.env":"y"}]}`, "metadata.env=[y] or absent"},
		{"directory of a glob", `{"resource":"prod/web/**"}`, "resource within [prod/web/]"},
		{"glob with alternatives", `{"resource":{"$glob":"{prod,dr}/web/x*"}}`, "resource=[{prod,dr}/web/x*] within [prod/web/ dr/web/]"},
		{"glob that is exact", `{"resource":{"$glob":["prod/a","dr/**"]}}`, "resource=[prod/a] within [dr/]"},
		{"glob without a directory", `{"resource":{"$glob":["prod/a","db*"]}}`, ""},
		{"a deep directory", `{"resource":"a/b/c/d/e/f/g/**"}`, "resource within [a/b/c/d/e/f/]"},
		{"a CEL comparison may fail", `{"cel":"intent.metadata.env == 'prod'"}`, "metadata.env=[prod] or absent"},
		{"a guarded CEL comparison may not", `{"cel":"has(intent.metadata.env) && intent.metadata.env == 'prod'"}`, "metadata.env=[prod] or absent"},
		{"CEL on a required field", `{"cel":"intent.action_type == 'x' && size(intent.resource) > 5"}`, "action_type=[x]"},
		{"CEL on the cost", `{"cel":"intent.cost.currency == 'EUR'"}`, "cost.currency=[EUR] or absent"},
		{"CEL that is opaque", `{"cel":"intent.action_type == 'x' || size(intent.resource) > 5"}`, ""},
		{"CEL startsWith", `{"cel":"intent.resource.startsWith('prod/web')"}`, "resource within [prod/]"},
		{"CEL not", `{"cel":"!(intent.action_type != 'x')"}`, "action_type=[x]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			for _, d := range mustCondition(t, tt.doc).Demands {
				if got == "" || tt.name == "value or absence" {
					got = describeDemand(d)
				}
			}
			if got != tt.want {
				t.Errorf("first demand of %s = %q, want %q", tt.doc, got, tt.want)
			}
		})
	}
}

func describeDemand(d condition.Demand) string {
	s := d.Field.Label()
	if len(d.Values) > 0 || len(d.Within) == 0 {
		s += fmt.Sprintf("=%v", d.Values)
	}
	if len(d.Within) > 0 {
		s += fmt.Sprintf(" within %v", d.Within)
	}
	if d.Absent {
		s += " or absent"
	}
	return s
}

// TestIndex_AsksOnlyCandidates checks that the rules for other intents are not evaluated for an
// intent.
func TestIndex_AsksOnlyCandidates(t *testing.T) {
	var rules []Rule
	for i := range 1000 {
		rules = append(rules, Rule{
			ID: fmt.Sprint(i), Name: "r", IsActive: true, Action: `{"decision":"deny"}`,
			Condition: fmt.Sprintf(`{"action_type":"deploy","resource":"team-%d/**","metadata.n":{"$ne":"x"}}`, i),
		})
	}
	rs := CompileRules(rules, Options{})
	f := testEvaluation(t, intentWith(func(in *Intent) { in.ActionType, in.Resource = "deploy", "team-7/x" }))
	var buffer bitsetBuffer
	candidates, n := rs.index.candidates(f.Frame, buffer.sized(len(rules))), 0
	for i := candidates.next(0); i >= 0; i = candidates.next(i + 1) {
		n++
	}
	if n != 1 {
		t.Errorf("%d of 1000 rules are candidates, want 1", n)
	}
}
