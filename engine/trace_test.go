package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/internal/must"
)

// TestDecision_Rules_ExplainShowsTheCauseAndNoValue checks that explain output has the error of a
// condition and its cause (`no such key: env`), and never a metadata value.
func TestDecision_Rules_ExplainShowsTheCauseAndNoValue(t *testing.T) {
	const value = "a-private-value"
	in := &Input{Intent: intentWith(func(in *Intent) { in.Cost, in.Metadata = nil, map[string]string{"n": value, "key": value} })}
	p := must.Get(CompilePolicy(explainedPolicy()))(t)
	for condition, want := range map[string]string{
		`{"cel":"intent.metadata.env == 'prod'"}`:                   "missing: no such key: intent.metadata.env",
		`{"cel":"intent.cost.amount_minor > 5"}`:                    "missing: no such key: the intent has no cost",
		`{"cel":"intent.metadata[intent.metadata.key] == 'prod'"}`:  "missing: no such key",
		`{"metadata.n":{"$gt":5}}`:                                  "not_decimal: a metadata value that is compared with a number is not a decimal",
		`{"cel":"decimal_compare(intent.metadata.n, '5') > 0"}`:     "not_decimal: a metadata value that is compared with a number is not a decimal",
		`{"cel":"int(intent.metadata.n) > 5"}`:                      "function: a function or a conversion has no result for what it was given",
		`{"cel":"timestamp(intent.metadata.n) > intent.issued_at"}`: "function: a function or a conversion has no result for what it was given",
		`{"rego":"true"}`:                "broken: the stored condition does not compile",
		`{"metadata.n":"` + value + `"}`: "matches",
		`{"metadata.n":"x"}`:             "no match",
		`{"action_type":"nothing that the index has to ask about"}`: "no match",
	} {
		in.Trace = &Trace{}
		result := Evaluate(p, CompileRules([]Rule{stored("r", "deny", condition, 1)}, Options{}), in)
		got := in.Trace.Rules[0].Verdict.String()
		if e := in.Trace.Rules[0].Err; e != nil {
			got = fmt.Sprintf("%v: %v", e.Cause, e)
			if result.ConditionErrors[e.Cause] != 1 || result.ConditionErrors.Total() != 1 {
				t.Errorf("%s: counts %v, want one error of %v", condition, result.ConditionErrors, e.Cause)
			}
		}
		if got != want || strings.Contains(got, value) {
			t.Errorf("%s: %s, want %s", condition, got, want)
		}
	}
}

func explainedPolicy() *ActionPolicy {
	return &ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 1, OrganizationID: "o", AgentID: "*",
		AllowedActionTypes: []string{"*"}, Status: StatusActive, UpdatedAt: time.Unix(1, 0),
	}
}

func TestTrace_SaysWhatEachRuleSaid(t *testing.T) {
	p := must.Get(CompilePolicy(explainedPolicy()))(t)
	const (
		yes   = `{"action_type":{"$glob":"*"}}`
		no    = `{"action_type":"none"}`
		fails = `{"cel":"intent.metadata.none == 'x'"}`
	)
	in := &Input{Intent: intentWith(nil)}
	for name, tc := range map[string]struct {
		rules []Rule
		want  string
	}{
		"decided":                {[]Rule{stored("a", "allow", no, 4), stored("b", "deny", yes, 3), stored("c", "deny", yes, 2), stored("d", "deny", no, 1)}, "no match, matches, not asked, not asked"},
		"none matches":           {[]Rule{stored("a", "deny", no, 2), stored("b", "deny", no, 1)}, "no match, no match"},
		"an allow fails":         {[]Rule{stored("a", "allow", fails, 2), stored("b", "deny", yes, 1)}, "error, matches"},
		"a deny fails":           {[]Rule{stored("a", "deny", fails, 2), stored("b", "deny", yes, 1)}, "error, not asked"},
		"an approval fails":      {[]Rule{stored("a", "approval_required", fails, 4), stored("b", "deny", no, 3), stored("c", "deny", yes, 2), stored("d", "deny", yes, 1)}, "error, no match, matches, not asked"},
		"an approval fails last": {[]Rule{stored("a", "approval_required", fails, 2), stored("b", "deny", no, 1)}, "error, no match"},
	} {
		t.Run(name, func(t *testing.T) {
			rs := CompileRules(tc.rules, Options{})
			untraced := *in
			traced := *in
			traced.Trace = &Trace{}
			if diff := cmp.Diff(Evaluate(p, rs, &untraced), Evaluate(p, rs, &traced)); diff != "" {
				t.Errorf("a trace changed the result (-without +with):\n%s", diff)
			}
			var got []string
			for _, a := range traced.Trace.Rules {
				got = append(got, a.Verdict.String())
			}
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("rules said %s, want %s", got, tc.want)
			}
		})
	}
}

// TestTrace_SaysWhatEachCheckFound checks that a trace has every check of the policy with its
// finding. It also says which checks were not asked because the resource cannot be read.
func TestTrace_SaysWhatEachCheckFound(t *testing.T) {
	doc := explainedPolicy()
	doc.AllowedActionTypes = []string{"other"}
	doc.AllowedResourcePatterns = []string{"https://a.example/**"}
	p := must.Get(CompilePolicy(doc))(t)
	for resource, want := range map[string]string{
		"https://a.example/x":    "action.not_allowed",
		"https://b.example/x":    "action.not_allowed resource.not_allowed",
		"URL:https://a.example/": "action.not_allowed -resource.not_allowed",
	} {
		in := &Input{Intent: intentWith(func(in *Intent) { in.Resource = resource }), Trace: &Trace{}}
		result := Evaluate(p, nil, in)
		var got []string
		for i, c := range in.Trace.Checks {
			if c.Code != Checks(doc)[i].Code {
				t.Fatalf("check %d is %s, want %s", i, c.Code, Checks(doc)[i].Code)
			}
			switch {
			case !c.Asked:
				got = append(got, "-"+string(c.Code))
			case c.Finding != nil:
				got = append(got, string(c.Finding.Code))
				if !slices.Contains(result.Findings, *c.Finding) {
					t.Errorf("%s: the finding %v is not of the result", resource, *c.Finding)
				}
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: checks found %q, want %q", resource, got, want)
		}
	}
}
