package examples_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"writ/document"
	"writ/engine"
	"writ/rego"
)

// suite is what the suites of recipes hold.
type suite struct {
	Suite   string                    `json:"suite"`
	Policy  string                    `json:"policy"`
	Rules   string                    `json:"rules"`
	Now     string                    `json:"now"`
	Intents map[string]map[string]any `json:"intents"`
	Tests   []suiteCase               `json:"tests"`
}

type suiteCase struct {
	Name   string          `json:"name"`
	Intent string          `json:"intent"`
	Set    map[string]any  `json:"set"`
	Want   engine.Decision `json:"want"`
	Codes  []engine.Code   `json:"codes"`
	Rule   string          `json:"rule"`
	Error  bool            `json:"error"`
}

// documents reads the documents of a file.
func documents(t *testing.T, name string) []*document.Document {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := document.Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// compiled returns the policy and the rules of documents. A rule without an id has its
// name for one.
func compiled(t *testing.T, docs ...*document.Document) (policy *engine.Policy, rules *engine.RuleSet) {
	t.Helper()
	options := engine.Options{CompileRego: rego.CompileCondition}
	var all []engine.Rule
	for _, d := range docs {
		if d.Kind == document.Rule {
			r, err := d.Rule(options)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range r.Warnings() {
				t.Errorf("%s: the rule %q has the warning %s", d.Name(), r.Rule().Name, w.Message)
			}
			rule := r.Rule()
			rule.ID = cmp.Or(rule.ID, rule.Name)
			all = append(all, rule)
			continue
		}
		p, err := d.Policy()
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range p.Warnings() {
			t.Errorf("%s: %s: %s", d.Name(), w.Field, w.Message)
		}
		if policy, err = engine.CompilePolicy(p); err != nil {
			t.Fatal(err)
		}
	}
	return policy, engine.CompileRules(all, options)
}

// loadSuite reads a suite with its policy and rules.
func loadSuite(t *testing.T, name string) (*suite, *engine.Policy, *engine.RuleSet) {
	t.Helper()
	s := new(suite)
	docs := documents(t, name)
	if len(docs) != 1 || docs[0].Kind != document.Suite {
		t.Fatalf("%s holds no suite", name)
	}
	if err := json.Unmarshal(docs[0].JSON(), s, json.RejectUnknownMembers(true)); err != nil { // set may hold null
		t.Fatal(err)
	}
	dir := filepath.Dir(name)
	policy, rules := compiled(t, append(documents(t, filepath.Join(dir, s.Policy)), documents(t, filepath.Join(dir, s.Rules))...)...)
	return s, policy, rules
}

// intent makes the intent of a case.
func (s *suite) intent(t *testing.T, c suiteCase, i int, policyID string) *engine.Intent {
	t.Helper()
	all := map[string]any{
		"intent_id": fmt.Sprintf("5eed0000-0000-4000-8000-%012d", i), "policy_id": policyID, "issued_at": s.Now,
	}
	s.extend(t, all, c.Intent)
	for path, value := range c.Set {
		set(all, path, value)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	in, err := engine.DecodeIntent(data, "intent")
	if err == nil {
		err = in.Validate()
	}
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return in
}

// extend writes a fixture over an intent, after the one that it extends.
func (s *suite) extend(t *testing.T, all map[string]any, name string) {
	t.Helper()
	fixture, ok := s.Intents[name]
	if !ok {
		t.Fatalf("there is no intent %q", name)
	}
	if from, ok := fixture["extends"].(string); ok {
		s.extend(t, all, from)
	}
	for member, value := range fixture {
		if object, ok := value.(map[string]any); ok {
			for key, v := range object {
				set(all, member+"."+key, v)
			}
		} else if member != "extends" {
			all[member] = value
		}
	}
}

// set sets the member of an intent at a path; nil removes it. What follows "metadata."
// is one key.
func set(all map[string]any, path string, value any) {
	member, key, nested := strings.Cut(path, ".")
	switch {
	case !nested && value == nil:
		delete(all, member)
	case !nested:
		all[member] = value
	default:
		object, _ := all[member].(map[string]any)
		if object == nil {
			object = make(map[string]any)
		}
		all[member] = object
		if object[key] = value; value == nil {
			delete(object, key)
		}
	}
}

// decide evaluates a case and reports where it is not decided as it says.
func (s *suite) decide(t *testing.T, c suiteCase, p *engine.Policy, rules *engine.RuleSet, in *engine.Intent) engine.Result {
	t.Helper()
	input := &engine.Input{Intent: in, Trace: &engine.Trace{}}
	res := engine.Evaluate(p, rules, input)
	var codes []string
	var decided []string
	for _, f := range res.Findings {
		codes = append(codes, string(f.Code))
		decided = append(decided, f.RuleID)
	}
	var want []string
	for _, code := range c.Codes {
		want = append(want, string(code))
	}
	switch {
	case res.Decision != c.Want:
		t.Errorf("%s: Evaluate(%s %s) = %v, want %v: %q", c.Name, in.ActionType, in.Resource, res.Decision, c.Want, res.Reasons())
	case len(want) > 0 && strings.Join(codes, " ") != strings.Join(want, " "):
		t.Errorf("%s: codes = %v, want %v", c.Name, codes, want)
	case c.Rule != "" && !strings.Contains("\n"+strings.Join(decided, "\n")+"\n", "\n"+c.Rule+"\n"):
		t.Errorf("%s: the rules that decided = %q, want %q", c.Name, decided, c.Rule)
	case (res.ConditionErrors.Total() > 0) != c.Error:
		t.Errorf("%s: %d conditions were an error, want error: %v", c.Name, res.ConditionErrors.Total(), c.Error)
	}
	return res
}

// TestSuites decides each case of each recipe and of each agent, by the engine and in Rego.
func TestSuites(t *testing.T) {
	names, err := filepath.Glob("*/*/suite_test.yaml")
	if err != nil || len(names) < 9 {
		t.Fatalf("found the suites %v, %v", names, err)
	}
	for _, name := range names {
		t.Run(filepath.Dir(name), func(t *testing.T) {
			s, p, rules := loadSuite(t, name)
			var docs []engine.Rule
			for _, r := range rules.Rules() {
				docs = append(docs, r.Rule())
			}
			query, err := rego.Prepare(p.Document(), docs)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range s.Tests {
				in := s.intent(t, c, i, p.Document().PolicyID)
				res := s.decide(t, c, p, rules, in)
				if got, _, err := query.Evaluate(&engine.Input{Intent: in}); err != nil || got != res.Decision {
					t.Errorf("%s: in Rego %v, %v, want %v", c.Name, got, err, res.Decision)
				}
			}
		})
	}
}
