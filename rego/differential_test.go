package rego

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
)

const (
	intentsPerPolicy = 200
	policies         = 104
	policiesShort    = 52
	// At most one of 30 triples may get no decision from the lowered policy, because a rule's own
	// Rego fails. The other triples are enough for the promise.
	undecidable = 30
)

// TestDecision_Evaluation_CELAndRegoAgree compares the engine, which decides by trees and CEL, with
// the lowered policy in Rego. Both must have the same decisions and findings for at least 20,000
// triples of a policy, its rules and an intent. With WRIT_SOAK=1 there are 2,000,000 triples.
func TestDecision_Evaluation_CELAndRegoAgree(t *testing.T) {
	n := policies
	if os.Getenv("WRIT_SOAK") != "" {
		n *= 100
	} else if testing.Short() {
		n = policiesShort
		fmt.Printf("differential: -short compares %d triples instead of %d\n", n*intentsPerPolicy, policies*intentsPerPolicy)
	}
	var total tally
	for seed := range uint64(n) {
		got := differ(t, seed, intentsPerPolicy)
		total.add(got)
		if t.Failed() {
			return
		}
	}
	t.Logf("%+v", total)
	if total.Compared < n*intentsPerPolicy*(undecidable-1)/undecidable || total.Allow*20 < total.Compared || total.Ruled*20 < total.Compared || total.Spoken*200 < total.Compared ||
		min(total.Imported, total.Documented, total.Contained)*400 < total.Compared {
		t.Errorf("the triples are lopsided: %+v", total)
	}
}

func FuzzDifferential(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { differ(t, seed, 20) })
}

// tally counts the comparisons.
type tally struct {
	Compared, Allow, Approval, Deny int
	// Ruled counts triples that a rule decided. Errors counts conditions without a value. Undecided
	// counts triples without a decision, because a rule's own Rego failed.
	Ruled, Errors, Undecided int
	// Spoken counts triples with messages of a rule.
	Spoken int
	// Imported, Documented and Contained count triples that a rule decided in Rego: one that imports a
	// library, one that reads data.lists, and one that is a set of messages.
	Imported, Documented, Contained int
}

func (t *tally) add(u tally) {
	t.Compared += u.Compared
	t.Allow += u.Allow
	t.Approval += u.Approval
	t.Deny += u.Deny
	t.Ruled += u.Ruled
	t.Errors += u.Errors
	t.Undecided += u.Undecided
	t.Spoken += u.Spoken
	t.Imported += u.Imported
	t.Documented += u.Documented
	t.Contained += u.Contained
}

// differ compares the decisions of one generated policy and its rules for n intents.
func differ(t *testing.T, seed uint64, n int) (got tally) {
	t.Helper()
	g := newGenerator(seed)
	p := g.policy()
	rules, failing := g.rules()
	c := newComparison(t, p, rules)
	for range n {
		in := g.input()
		result, problem := c.compare(in)
		if failing && strings.HasPrefix(problem, errUndecided) {
			got.Undecided++
			continue
		}
		if problem != "" {
			t.Errorf("seed %d: %s\n%s", seed, problem, reproduce(t, p, rules, in))
			return got
		}
		got.count(result, c.rules)
	}
	return got
}

func (t *tally) count(r engine.Result, rules *engine.RuleSet) {
	t.Compared++
	t.Errors += r.ConditionErrors.Total()
	switch r.Decision {
	case engine.Allow:
		t.Allow++
	case engine.ApprovalRequired:
		t.Approval++
	default:
		t.Deny++
	}
	if strings.HasPrefix(string(r.Findings[len(r.Findings)-1].Code), "rule.") {
		t.Ruled++
	}
	for _, rule := range rules.Rules() {
		source, isRego := rule.RegoSource()
		if !isRego || rule.Rule().ID != r.Findings[len(r.Findings)-1].RuleID {
			continue
		}
		for count, uses := range map[*int]bool{
			&t.Imported: len(rule.Libraries()) > 0, &t.Documented: len(rule.Documents()) > 0,
			&t.Contained: strings.Contains(source, "\ndeny contains "),
		} {
			if uses {
				*count++
			}
		}
	}
	if n := len(r.Findings); n > 1 && r.Findings[n-1].RuleID != "" && r.Findings[n-1].RuleID == r.Findings[n-2].RuleID {
		t.Spoken++
	}
}

// comparison has a policy and its rules for both evaluators.
type comparison struct {
	policy *engine.Policy
	rules  *engine.RuleSet
	// unindexed has the same rules, but those in Rego are always asked: see [unindexed].
	unindexed *engine.RuleSet
	query     *Query
	// decision asks for the module's own decision. The decision depends only on the set of codes,
	// so it is asked once for each set. asked has the sets that were asked.
	decision *prepared
	asked    map[string]bool
	// reasons asks for the module's reasons.
	reasons *prepared
}

func newComparison(t *testing.T, p *engine.ActionPolicy, rules []engine.Rule) *comparison {
	t.Helper()
	policy, err := engine.CompilePolicy(p)
	if err != nil {
		t.Fatalf("CompilePolicy: %v\n%s", err, marshal(p))
	}
	libraries, err := CompileLibraries(generatedLibraries())
	if err != nil {
		t.Fatalf("CompileLibraries: %v", err)
	}
	set := engine.CompileRules(rules, engine.Options{Libraries: libraries, Lists: generatedLists()})
	for _, broken := range set.Broken() {
		t.Fatalf("CompileRules: %v\n%s", broken, marshal(rules))
	}
	query, err := Prepare(p, rules, generatedLists(), generatedLibraries()...)
	if err != nil {
		t.Fatalf("Prepare: %v\n%s\n%s", err, marshal(p), marshal(rules))
	}
	query.timeout = time.Minute // the machine may be busy with other tests
	decision, err := prepare(query.codes.compiler, document(p, "decision"), 100)
	if err != nil {
		t.Fatalf("preparing the decision: %v", err)
	}
	reasons, err := prepare(query.codes.compiler, document(p, "reasons"), 100)
	if err != nil {
		t.Fatalf("preparing the reasons: %v", err)
	}
	plain := engine.CompileRules(rules, engine.Options{Libraries: unindexedLibraries{libraries}, Lists: generatedLists()})
	return &comparison{policy, set, plain, query, decision, map[string]bool{}, reasons}
}

// errUndecided begins the problem if the evaluation in Rego ends in an error.
const errUndecided = "Query.Evaluate: "

// compare returns the engine's result, and the difference to it in Rego, or "".
func (c *comparison) compare(in *engine.Input) (engine.Result, string) {
	want := engine.Evaluate(c.policy, c.rules, in)
	if plain := engine.Evaluate(c.policy, c.unindexed, in); !reflect.DeepEqual(plain, want) {
		return want, fmt.Sprintf("engine.Evaluate with the index = %+v, without %+v", want, plain)
	}
	decision, codes, err := c.query.Evaluate(in)
	switch {
	case err != nil:
		return want, errUndecided + err.Error()
	case decision != want.Decision || !slices.Equal(codes, codesOf(want)):
		return want, fmt.Sprintf("Query.Evaluate = %v %v, engine.Evaluate = %v %v", decision, codes, want.Decision, want.Reasons())
	}
	if problem := c.compareMessages(in, want); problem != "" {
		return want, problem
	}
	return want, c.compareDecision(in, codes, want.Decision)
}

// compareMessages compares the reasons of rules, if a rule has several and none has failed: the module has
// another reason for a rule that fails.
func (c *comparison) compareMessages(in *engine.Input, result engine.Result) string {
	var want []string
	for _, f := range result.Findings {
		if f.Cause != "" {
			return ""
		}
		if f.RuleID != "" {
			want = append(want, f.Reason)
		}
	}
	if len(want) < 2 {
		return ""
	}
	input, err := Input(c.policy.Document(), in)
	if err != nil {
		return err.Error()
	}
	v, err := c.ask(c.reasons, input)
	if err != nil {
		return err.Error()
	}
	var got []string
	if all, ok := v.(*ast.Array); ok {
		all.Foreach(func(t *ast.Term) {
			if s := string(t.Value.(ast.String)); strings.HasPrefix(s, "rule.") {
				got = append(got, s)
			}
		})
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("the module's reasons = %q, want %q", got, want)
	}
	return ""
}

// ask asks the module for a value, with the documents of the lists.
func (c *comparison) ask(question *prepared, input ast.Value) (ast.Value, error) {
	left := inTime(time.Now, time.Minute)
	left.lists, left.root = c.query.lists, c.query.root
	return question.ask(input, left)
}

func (c *comparison) compareDecision(in *engine.Input, codes []engine.Code, want engine.Decision) string {
	key := fmt.Sprint(codes)
	if c.asked[key] {
		return ""
	}
	c.asked[key] = true
	input, err := Input(c.policy.Document(), in)
	if err != nil {
		return err.Error()
	}
	got, err := c.ask(c.decision, input)
	if err != nil || got.Compare(ast.String(want.String())) != 0 {
		return fmt.Sprintf("the module's decision = %v, %v, want %v", got, err, want)
	}
	return ""
}

// reproduce writes a triple for which the two evaluators differ, as txtar. It removes every part
// that the difference does not need.
func reproduce(t *testing.T, p *engine.ActionPolicy, rules []engine.Rule, in *engine.Input) string {
	t.Helper()
	differs := func(p *engine.ActionPolicy, rules []engine.Rule) bool {
		_, problem := newComparison(t, p, rules).compare(in)
		return problem != ""
	}
	for i := len(rules) - 1; i >= 0; i-- {
		if fewer := slices.Delete(slices.Clone(rules), i, i+1); differs(p, fewer) {
			rules = fewer
		}
	}
	small := *p
	for _, list := range []*[]string{&small.AllowedActionTypes, &small.DeniedActionTypes, &small.AllowedResourcePatterns, &small.BlockedResourcePatterns} {
		for i := len(*list) - 1; i >= 0; i-- {
			before := *list
			if *list = slices.Delete(slices.Clone(before), i, i+1); !differs(&small, rules) {
				*list = before
			}
		}
	}
	return txtar(&small, rules, in)
}

func txtar(p *engine.ActionPolicy, rules []engine.Rule, in *engine.Input) string {
	var b strings.Builder
	shown := map[string]any{ // the other members are not drawn, or have no JSON
		"Intent": in.Intent, "Names": in.Names, "DecidedAt": in.DecidedAt, "Agent": in.Agent,
		"RequireRegistered": in.RequireRegistered, "Usage": in.Usage, "Stopped": in.Stopped,
	}
	for _, part := range []struct {
		name  string
		value any
	}{{"policy.json", p}, {"rules.json", rules}, {"input.json", shown}} {
		text, err := json.MarshalIndent(part.value, "", "  ")
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "-- %s --\n%s\n", part.name, text)
	}
	files, err := Lower(p, rules, generatedLists(), generatedLibraries()...)
	if err != nil {
		return err.Error()
	}
	for _, f := range files {
		fmt.Fprintf(&b, "-- %s --\n%s", f.Name, f.Source)
	}
	return b.String()
}
