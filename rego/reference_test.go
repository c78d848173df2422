package rego_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"writ/engine"
	"writ/internal/reference"
	"writ/rego"
)

// TestReference holds the three evaluators against each other: the engine in
// CEL, its lowering in Rego, and the evaluator that was written from the rules'
// text alone. WRIT_SOAK=1 asks them 100,000 cases.
func TestReference(t *testing.T) {
	n := 2000
	if os.Getenv("WRIT_SOAK") == "1" {
		n = 100_000
	}
	const seed = 8
	g := reference.NewGenerator(seed)
	counts := map[string]int{}
	differences := map[string]int{}
	for i := range n {
		c := g.Next()
		want, err := reference.Evaluate(c)
		wanted := "refused"
		if err == nil {
			wanted = written(want.Decision, want.Codes)
			reference.Count(counts, want)
		} else {
			counts["refused"]++
		}
		inEngine, inRego := decide(t, c)
		for name, got := range map[string]string{"engine": inEngine, "rego": inRego} {
			if got == wanted {
				continue
			}
			if got == notInRego {
				counts[notInRego]++
				continue
			}
			differences[name]++
			if differences[name] <= 200 {
				t.Errorf("seed %d, case %d: %s says %s, want %s (%v)\n%s", seed, i, name, got, wanted, err, marshal(t, c))
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-30s %6d  %5.2f %%", k, counts[k], 100*float64(counts[k])/float64(n))
	}
	for _, k := range reference.Named {
		if counts[k] < n/50 {
			t.Errorf("%s occurs in fewer than 2 %% of cases", k)
		}
	}
	t.Logf("%d cases of seed %d, differences: %v", n, seed, differences)
}

// notInRego is a case with a rule in CEL that the lowering refuses by name.
const notInRego = "not in Rego"

// written writes a decision with the codes of its findings.
func written[C ~string](decision string, codes []C) string {
	codes = slices.Compact(slices.Sorted(slices.Values(codes)))
	return fmt.Sprint(decision, codes)
}

// decide asks the engine and its lowering in Rego.
func decide(t *testing.T, c *reference.Case) (inEngine, inRego string) {
	t.Helper()
	refused := "refused"
	doc, err := engine.DecodePolicy(marshal(t, c.Policy), "policy")
	if err != nil {
		t.Fatal(err)
	}
	intent, err := engine.DecodeIntent(marshal(t, c.Intent), "intent")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := engine.DecodeRules(marshal(t, append([]reference.Rule{}, c.Rules...)), "rules")
	if err != nil {
		t.Fatal(err)
	}
	options := engine.Options{CompileRego: rego.CompileCondition}
	for _, r := range rules {
		if err := engine.ValidateRule(r, options); err != nil {
			t.Errorf("rule %s %s: %v", r.Condition, r.Action, err)
			return refused, refused
		}
	}
	policy, err := engine.CompilePolicy(doc)
	if err == nil {
		err = intent.Validate()
	}
	if err != nil {
		if testing.Verbose() {
			refused += ": " + err.Error()
		}
		return refused, refused
	}
	in := &engine.Input{Intent: intent, Agent: status(c), RequireRegistered: c.RequireRegistered, Usage: engine.Usage{Exceeded: c.UsageExceeded}}
	res := engine.Evaluate(policy, engine.CompileRules(rules, options), in)
	var codes []engine.Code
	for _, f := range res.Findings {
		codes = append(codes, f.Code)
	}
	inEngine = written(res.Decision.String(), codes)
	query, err := rego.Prepare(doc, rules)
	if err != nil {
		if strings.Contains(err.Error(), "no equal in Rego") {
			return inEngine, notInRego
		}
		return inEngine, err.Error()
	}
	for range 10 { // a busy machine may exceed the time that a query has
		decision, codes, evalErr := query.Evaluate(in)
		if err = evalErr; err == nil {
			return inEngine, written(decision.String(), codes)
		}
	}
	return inEngine, err.Error()
}

// status is the state of the intent's agent among those registered: what every
// store answers by folded ids.
func status(c *reference.Case) engine.AgentStatus {
	id, found := c.Intent.AgentID, engine.AgentUnregistered
	for _, a := range c.Agents {
		for _, name := range []string{a.ID, a.ExternalID} {
			switch {
			case name == "" || engine.FoldID(name) != engine.FoldID(id):
			case a.Status == string(engine.AgentDisabled):
				return engine.AgentDisabled
			case name == id:
				found = engine.AgentActive
			}
		}
	}
	return found
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
