package suite

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// TestLoad_RefusesWithEveryPlace checks that the error names each mistake of a suite with its
// place.
func TestLoad_RefusesWithEveryPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string // texts that the error must contain
	}{
		"an unknown member":      {head + "test: []\n", []string{`s.yaml:4:1: test: unknown field`}},
		"no tests":               {head, []string{`s.yaml:1:1: tests: is required`}},
		"no policy":              {"tests: [{name: a, want: allow}]", []string{`s.yaml:1:1: policy: is required`}},
		"a policy that is not":   {"policy: none.yaml\ntests: []", []string{`s.yaml:1:9: policy: reading none.yaml: file does not exist`}},
		"a policy of rules":      {"policy: r.yaml\ntests: []", []string{`s.yaml:1:9: policy: there is no policy in r.yaml`}},
		"a policy that is wrong": {"policy: {policy_id: x, allowed_action_types: [a]}\ntests: []", []string{`s.yaml:1:21: policy.policy_id: `}},
		"no want":                {head + "tests: [{name: a, intent: read}]", []string{`s.yaml:4:9: tests[0]: want is required`}},
		"an unknown decision":    {head + "tests: [{name: a, intent: read, want: denied}]", []string{`s.yaml:4:39: tests[0].want: there is no decision "denied": did you mean deny?`}},
		"a refusal with codes":   {head + "tests: [{name: a, intent: read, want: refused, codes: [action.denied]}]", []string{`s.yaml:4:9: tests[0]: an intent that is refused is not decided: leave out codes, rule and error`}},
		"a message of a deny":    {head + "tests: [{name: a, intent: read, want: deny, message: x}]", []string{`tests[0]: message is for a refused intent, and the wanted decision is deny`}},
		"an unknown code":        {head + "tests: [{name: a, intent: read, want: deny, codes: [action.deny]}]", []string{`s.yaml:4:53: tests[0].codes[0]: there is no code "action.deny": did you mean action.denied?`}},
		"an unknown rule":        {"rules: r.yaml\n" + head + "tests: [{name: a, intent: read, want: deny, rule: Write wait}]", []string{`tests[0].rule: there is no rule "Write wait": did you mean Writes wait?`}},
		"an unknown intent":      {head + "tests: [{name: a, intent: raed, want: deny}]", []string{`there is no intent "raed": did you mean read?`}},
		"an unknown column":      {head + "tests: [{name: a, intent: read, table: {columns: [cost.amount, want], rows: []}}]", []string{`columns[0]: there is no column "cost.amount": did you mean cost.amount_minor?`, `rows: is required`}},
		"an unknown path":        {head + "tests: [{name: a, intent: read, want: deny, set: {resorce: x}}]", []string{`tests[0].set.resorce: there is no member "resorce" of an intent: did you mean resource?`}},
		"an unknown status":      {head + "tests: [{name: a, intent: read, want: deny, agent: disable}]", []string{`there is no status "disable": did you mean disabled?`}},
		"a short row":            {head + "tests: [{name: a, intent: read, want: deny, table: {columns: [resource, want], rows: [[x]]}}]", []string{`rows[0]: has 1 cells, and there are 2 columns`}},
		"an empty each":          {head + "tests: [{name: a, intent: read, want: deny, each: {resource: []}}]", []string{`each.resource: has no value`}},
		"two of one name":        {head + "tests: [{name: a, intent: read, want: deny}, {name: a, intent: read, want: deny}]", []string{`tests[1].name: another test of the suite is called "a", too`}},
		"an invalid intent":      {head + "tests: [{name: a, intent: read, want: deny, set: {cost: {amount_minor: x}}}]", []string{`s.yaml:4:72: tests[0].set.cost.amount_minor: intent.cost.amount_minor: want an integer`, `intent.cost.currency: is required`}},
		"an invalid fixture":     {"policy: p.yaml\nintents:\n  a: {agent_id: b, acton_type: c, resource: d}\ntests: [{name: a, intent: a, want: deny}]", []string{`s.yaml:3:32: intents.a.acton_type: intent.acton_type: unknown field`, `intent.issued_at: is required: want an RFC 3339 time; or give the suite a time: now`}},
		"an unused fixture":      {"policy: p.yaml\nnow: 2026-11-02T10:00:00Z\nintents: {a: {agent_id: b}, c: {agent_id: a, action_type: b, resource: c}}\ntests: [{name: a, intent: c, want: deny}]", []string{`s.yaml:3:14: intents.a: intent.action_type: is required`}},
		"a cycle":                {"policy: p.yaml\nintents: {a: {extends: b}, b: {extends: a}}\ntests: [{name: a, intent: a, want: deny}]", []string{`extends itself: a, b, a`}},
		"an unknown base":        {"policy: p.yaml\nintents: {ab: {extends: abc}}\ntests: [{name: a, intent: ab, want: deny}]", []string{`s.yaml:2:25: intents.ab.extends: there is no intent "abc": did you mean ab?`}},
		"another policy's id":    {head + "tests: [{name: a, intent: read, want: deny, set: {policy_id: 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a11}}]", []string{`tests[0].set.policy_id: intent.policy_id: the policy is 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10`}},
		"null elsewhere":         {head + "tests: [{name: a, intent: read, want: null}]", []string{`s.yaml:4:39: tests[0].want: must not be null`}},
		"many cases":             {head + "tests: [{name: a, intent: read, want: deny, each: {resource: [" + strings.Repeat("a,", 400) + "], action_type: [" + strings.Repeat("a,", 400) + "]}}]", []string{`there are more than 100000 cases`}},
		"a document of another":  {policyText, []string{`s.yaml:1:1: is a policy: want a suite`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loaderOf(map[string]string{"s.yaml": tc.text}).Load("s.yaml")
			if placed := (*document.Error)(nil); !errors.As(err, &placed) {
				t.Fatalf("Load = %v, want a *document.Error", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Load = %v\nwant …%s…", err, want)
				}
			}
		})
	}
}

// TestFile_EveryMemberTellsASuite checks that package document recognizes a suite by each member of
// File.
func TestFile_EveryMemberTellsASuite(t *testing.T) {
	for _, name := range engine.MemberNames(reflect.TypeFor[File]()) {
		docs, err := document.Parse("s.yaml", []byte(name+": x"))
		if err != nil || docs[0].Kind != document.Suite {
			t.Errorf("a document with %s is a %q, %v, want a suite", name, docs[0].Kind, err)
		}
	}
}
