package rego_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/internal/reference"
	"writ.example/writ/rego"
)

// TestReference compares three evaluators: the engine in CEL, its lowering in Rego, and the
// reference, which was written from the decisions alone. The engine and the reference must have the same
// findings in the same order. It runs 1,000 cases. With WRIT_SOAK=1 it runs 100,000, with -short 400.
func TestReference(t *testing.T) {
	const seed, shards = 8, 8
	n, share := 1000, 50
	switch {
	case os.Getenv("WRIT_SOAK") == "1":
		n = 100_000
	case testing.Short():
		n, share = 400, 100 // the share varies more among so few cases
	}
	tally := tally{counts: map[string]int{}}
	t.Run("cases", func(t *testing.T) {
		for shard := range shards {
			t.Run(fmt.Sprint(seed+shard), func(t *testing.T) {
				t.Parallel()
				g := reference.NewGenerator(uint64(seed + shard))
				for range n / shards {
					tally.compare(t, g.Next())
				}
			})
		}
	})
	for _, k := range slices.Sorted(maps.Keys(tally.counts)) {
		t.Logf("%-30s %6d  %5.2f %%", k, tally.counts[k], 100*float64(tally.counts[k])/float64(n))
	}
	for _, k := range reference.Named {
		if tally.counts[k] < n/share {
			t.Errorf("%s occurs in fewer than 1 of %d cases", k, share)
		}
	}
}

// A tally counts the results in the cases of all shards.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

// maxShown bounds the differences that are shown.
const maxShown = 40

// compare decides a case with all three evaluators and reports a difference.
func (y *tally) compare(t *testing.T, c *reference.Case) {
	t.Helper()
	want, err := reference.Evaluate(c)
	wanted := refused
	if err == nil {
		wanted = written(want.Decision, want.Codes)
	}
	inEngine, inRego, findings := decide(t, c)

	y.mu.Lock()
	defer y.mu.Unlock()
	if err == nil {
		reference.Count(y.counts, want)
	} else {
		y.counts[refused]++
	}
	if inRego == notInRego {
		y.counts[notInRego]++
		inRego = inEngine
	}
	same := func(got string) bool { return got == wanted || wanted == refused && strings.HasPrefix(got, refused) }
	if same(inEngine) && same(inRego) && (err != nil || slices.EqualFunc(findings, want.Findings, sameFinding)) {
		return
	}
	y.counts["differences"]++
	if y.counts["differences"] <= maxShown {
		t.Errorf("the engine says %s with %+v, Rego %s, want %s with %+v (%v)\n%s",
			inEngine, findings, inRego, wanted, want.Findings, err, marshal(t, c))
	}
}

// sameFinding compares a finding as data with a finding of the reference.
func sameFinding(got engine.Finding, want reference.Finding) bool {
	if string(got.Code) != want.Code || got.Outcome.String() != want.Outcome || got.RuleID != want.RuleID {
		return false
	}
	if len(want.Whys) == 0 {
		return got.Cause == "" && got.Field == want.Field
	}
	return slices.Contains(want.Whys, reference.Why{Cause: got.Cause, Field: got.Field})
}

// refused is the result of a case that has an invalid document.
const refused = "refused"

// notInRego is the result in Rego if a rule of the case has no rendering in Rego.
const notInRego = "not in Rego"

// written writes a decision with the codes of its findings.
func written[C ~string](decision string, codes []C) string {
	codes = slices.Compact(slices.Sorted(slices.Values(codes)))
	return fmt.Sprint(decision, codes)
}

// decide returns the result of the engine, the result of its lowering in Rego, and the engine's
// findings.
func decide(t *testing.T, c *reference.Case) (inEngine, inRego string, _ []engine.Finding) {
	t.Helper()
	doc := must.Get(engine.DecodePolicy(marshal(t, c.Policy), "policy"))(t)
	intent := must.Get(engine.DecodeIntent(marshal(t, c.Intent), "intent"))(t)
	var rules []engine.Rule
	if err := engine.Decode(marshal(t, append([]reference.Rule{}, c.Rules...)), "rules", &rules); err != nil {
		t.Fatal(err)
	}
	options := engine.Options{CompileRego: rego.CompileCondition}
	for _, r := range rules {
		if err := engine.ValidateRule(r, options); err != nil {
			t.Errorf("rule %s %s: %v", r.Condition, r.Action, err)
			return refused, refused, nil
		}
	}
	policy, err := engine.CompilePolicy(doc)
	if err == nil {
		err = intent.Validate()
	}
	if err != nil {
		why := refused + ": " + err.Error()
		return why, why, nil
	}
	in := &engine.Input{Intent: intent, Agent: status(c), RequireRegistered: c.RequireRegistered, Stopped: c.Stopped, Usage: engine.Usage{Exceeded: c.UsageExceeded}, Names: engine.AgentNames{Sent: intent.AgentID}}
	if a := c.Registered(); a != nil {
		in.Names.ID, in.Names.ExternalID = a.ID, a.ExternalID
	}
	res := engine.Evaluate(policy, engine.CompileRules(rules, options), in)
	var codes []engine.Code
	for _, f := range res.Findings {
		codes = append(codes, f.Code)
	}
	inEngine = written(res.Decision.String(), codes)
	query, err := rego.Prepare(doc, rules, nil)
	if err != nil {
		if unrendered := (*rego.UnrenderedError)(nil); errors.As(err, &unrendered) {
			return inEngine, notInRego, res.Findings
		}
		return inEngine, err.Error(), res.Findings
	}
	for range 10 { // on a busy machine a query may exceed its time limit
		decision, codes, evalErr := query.Evaluate(in)
		if err = evalErr; err == nil {
			return inEngine, written(decision.String(), codes), res.Findings
		}
	}
	return inEngine, err.Error(), res.Findings
}

// status returns the status of the intent's agent. Like every store, it compares folded ids.
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
	b := must.Get(json.Marshal(v))(t)
	return b
}
