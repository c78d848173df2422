package rego

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// said returns the messages of a condition that matches, and whether some of its messages are left out.
func said(t *testing.T, l engine.Libraries, source string, in *engine.RegoInput, kept *engine.Intent) (texts []string, left bool) {
	t.Helper()
	c, err := l.Compile(source)
	if err != nil {
		t.Fatalf("Compile = %v\n%s", err, source)
	}
	if ok, err := c.Match(in); err != nil || !ok {
		t.Fatalf("Match = %v, %v\n%s", ok, err, source)
	}
	return c.Messages(in, kept), len(c.Review().Echoes) > 0
}

// canary is a value of the metadata that no reason may show.
const canary = "Canary7f3a"

func canaryInput() *engine.RegoInput {
	in := sampleInput()
	in.Intent.Metadata = map[string]string{"env": "prod", "secret": canary, "n": "7", "key_" + canary[:3]: "x"}
	return in
}

// TestDecision_Rules_MessagesHoldNoMetadata has modules with messages, and those that are left out.
func TestDecision_Rules_MessagesHoldNoMetadata(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{lib("m", `secret := input.intent.metadata.secret

same(x) := x

is_secret(x) if x == input.intent.metadata.secret

title := "a title" if input.intent.metadata.env == "prod"

of(intent) := intent.resource`)}))(t)
	const none = "!" // all are left out
	for _, tt := range []struct{ name, source, want string }{
		{"a constant", `reason contains "no"`, "no"},
		{"two, sorted", `reason contains "b" if true
reason contains "a" if true`, "a|b"},
		{"a constant that depends on metadata", `reason contains "not in prod" if input.intent.metadata.env == "prod"`, "not in prod"},
		{"a constant of another rule", `reason contains title
title := "big" if input.intent.metadata.env == "prod"`, "big"},
		{"a constant with an else", `reason contains title
title := "big" if input.intent.metadata.env == "dev" else := "small" if input.intent.metadata.n`, "small"},
		{"the resource", `reason contains msg if msg := sprintf("%s is out of bounds", [input.intent.resource])`, "prod/eu/api is out of bounds"},
		{"a name for the intent", `reason contains msg if { i := input.intent; i.metadata.env == "prod"; msg := i.resource }`, "prod/eu/api"},
		{"an import", `import input.intent as i
reason contains msg if { i.metadata.env == "prod"; msg := i.resource }`, "prod/eu/api"},
		{"the cost", `reason contains msg if msg := sprintf("%d is too much", [input.intent.cost.amount_minor])`, "5001 is too much"},
		{"the policy and the agent", `reason contains concat(" ", [input.policy.policy_id, input.agent.id])`, "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10 team-a/deployer"},
		{"another set", `reason contains msg if some msg in warnings
warnings contains "a" if input.intent.metadata.env == "prod"
warnings contains "b"`, "a|b"},
		{"a metadata key that is missing", `reason contains msg if { some key in ["ticket", "owner"]; not input.intent.metadata[key]; msg := sprintf("%s is missing", [key]) }`,
			"owner is missing|ticket is missing"},
		{"the keys that are missing", `reason contains msg if { missing := {"ticket", "env"} - object.keys(input.intent.metadata); msg := sprintf("%v is missing", [missing]) }`,
			`{"ticket"} is missing`},
		{"a library's constant", `reason contains data.lib.m.title`, "a title"},
		{"no text", `reason contains 7 if false
reason contains json.unmarshal("7") if true
reason contains "a"`, "a"},
		{"a control character", `reason contains " a\nb\t\u0000c "`, "a b c"},
		{"an empty text", `reason contains "  "
reason contains "a"`, "a"},
		{"too long", `reason contains msg if msg := concat("", ["é" | some _ in numbers.range(1, 600)])`, strings.Repeat("é", maxMessage)},
		{"too many", `reason contains msg if { some i in numbers.range(10, 99); msg := sprintf("m%d", [i]) }`, "m10|m11|m12|m13|m14|m15|m16|m17"},
		{"not UTF-8", `reason contains base64.decode("/w==")
reason contains "a"`, "a"},
		{"one fails", `reason contains msg if msg := sprintf("%d", [to_number(input.intent.metadata.env)])
reason contains msg if { to_number(input.intent.metadata.env) > 5; msg := "b" }
reason contains "a"`, "!a"},
		{"none", `reason contains "a" if input.intent.metadata.env == "dev"`, ""},

		{"a value", `reason contains input.intent.metadata.secret`, none},
		{"a value beside a constant", `reason contains input.intent.metadata.secret
reason contains "a"`, "!a"},
		{"all of the metadata", `reason contains json.marshal(input.intent.metadata)`, none},
		{"all of the intent", `reason contains sprintf("%v", [input.intent])`, none},
		{"all of the input", `reason contains sprintf("%v", [input])`, none},
		{"a member by a variable", `reason contains msg if { some k; msg := input.intent[k].secret }`, none},
		{"sprintf", `reason contains sprintf("env %s", [input.intent.metadata.secret])`, none},
		{"a template", `reason contains $"env {input.intent.metadata.secret}"`, none},
		{"a variable", `reason contains msg if { x := input.intent.metadata.secret; y := lower(x); msg := y }`, none},
		{"a name for the metadata", `reason contains msg if { m := input.intent.metadata; msg := m.secret }`, none},
		{"a name for the intent's metadata", `reason contains msg if { i := input.intent; msg := i.metadata.secret }`, none},
		{"a rule", `reason contains secret
secret := input.intent.metadata.secret`, none},
		{"an else", `reason contains secret
secret := "a" if input.intent.cost.amount_minor == 1 else := input.intent.metadata.secret`, none},
		{"a partial object", `reason contains secrets.x
secrets[k] := v if { some k in ["x"]; v := input.intent.metadata.secret }`, none},
		{"a key of a partial object", `reason contains msg if some msg, _ in secrets
secrets[k] := 1 if k := input.intent.metadata.secret`, none},
		{"a nested rule", `reason contains a.b.c
a.b.c := input.intent.metadata.secret`, none},
		{"a set", `reason contains msg if some msg in secrets
secrets contains input.intent.metadata.secret`, none},
		{"a function of its argument", `reason contains same(input.intent.metadata.secret)
same(x) := x`, none},
		{"a function of the intent", `reason contains f(input.intent)
f(i) := i.metadata.secret`, none},
		{"a function without", `reason contains f("a")
f(_) := input.intent.metadata.secret`, none},
		{"a library", `reason contains data.lib.m.secret`, none},
		{"a library's function", `reason contains data.lib.m.same(input.intent.metadata.secret)`, none},
		{"a library's function of the intent", `reason contains data.lib.m.of(input.intent)`, none},
		{"all of a library", `reason contains sprintf("%v", [data.lib.m.secret])`, none},
		{"a test by a library", `reason contains msg if { some msg in [lower("CANARY7F3A"), "Canary7f3a"]; data.lib.m.is_secret(msg) }`, none},
		{"a comprehension", `reason contains concat("", [c | some c in split(input.intent.metadata.secret, "")])`, none},
		{"a test in a comprehension", `reason contains msg if { some msg in ["a", "Canary7f3a"]; count([1 | input.intent.metadata.secret == msg]) == 1 }`, none},
		{"an object comprehension", `reason contains msg if { o := {k: v | some k, v in input.intent.metadata}; msg := o.secret }`, none},
		{"a count", `reason contains sprintf("%d", [count([i | some i in numbers.range(1, 99); i <= to_number(input.intent.metadata.n)])])`, none},
		{"chosen by an equality", `reason contains msg if { some msg in ["a", "Canary7f3a"]; msg == input.intent.metadata.secret }`, none},
		{"chosen by a test", `reason contains msg if { some msg in ["a", "Canary7f3a"]; startswith(input.intent.metadata.secret, msg) }`, none},
		{"chosen letter by letter", `reason contains concat("", [c | some i in numbers.range(0, 9); some c in split("Canry7f3a", ""); substring(input.intent.metadata.secret, i, 1) == c])`, none},
		{"chosen by not", `reason contains msg if { some msg in ["a", "Canary7f3a"]; not input.intent.metadata.secret != msg }`, none},
		{"chosen by every", `reason contains msg if { some msg in ["a", "Canary7f3a"]; every x in [1] { input.intent.metadata.secret == msg; x > 0 } }`, none},
		{"chosen through a chain", `reason contains msg if { some msg in ["a", "Canary7f3a"]; x := msg; y := x; y == input.intent.metadata.secret }`, none},
		{"chosen by a rule with with", `reason contains msg if { some msg in ["a", "Canary7f3a"]; is with input.intent.action_type as msg }
is if input.intent.action_type == input.intent.metadata.secret`, none},
		{"chosen by a set with with", `reason contains msg if { some msg in ["a", "Canary7f3a"]; count(is) == 1 with input.intent.action_type as msg }
is contains 1 if input.intent.action_type == input.intent.metadata.secret`, none},
		{"a resource that is metadata", `reason contains msg if msg := input.intent.resource with input.intent.resource as input.intent.metadata.secret`, none},
		{"a rule whose resource is metadata", `reason contains msg if msg := name with input.intent.resource as input.intent.metadata.secret
name := input.intent.resource`, none},
		{"a key that is metadata", `reason contains msg if { some msg in ["a", "Canary7f3a"]; input.intent.metadata[msg] with input.intent.metadata as {input.intent.metadata.secret: "x"} }`, none},
		{"a key of a rule with with", `reason contains msg if { some msg in keys with input.intent.metadata as {input.intent.metadata.secret: "x"} }
keys contains k if { some k in ["a", "Canary7f3a"]; input.intent.metadata[k] }`, none},
		{"keys of other metadata", `reason contains msg if { some msg in object.keys(input.intent.metadata) with input.intent.metadata as {input.intent.metadata.secret: "x"} }`, none},
		{"a mocked function", `reason contains msg if msg := f("a") with f as g
f(_) := "a"
g(_) := input.intent.metadata.secret`, none},
		{"a mocked function of OPA", `reason contains msg if msg := h with lower as g
h := lower("x")
g(_) := input.intent.metadata.secret`, none},
		{"a look-up", `reason contains msg if { o := {"Canary7f3a": "Canary7f3a"}; msg := o[input.intent.metadata.secret] }`, none},
		{"walk", `reason contains msg if { walk(input, [p, msg]); p[count(p) - 1] == "secret" }`, none},
		{"object.get", `reason contains object.get(input, ["intent", "metadata", "secret"], "")`, none},
		{"object.union", `reason contains object.union(input.intent, {"a": 1}).metadata.secret`, none},
		{"object.filter", `reason contains object.filter(input.intent, ["metadata"]).metadata.secret`, none},
		{"an item", `reason contains msg if some msg in writ.items(input.intent.metadata.secret)`, none},
		{"a hash", `reason contains crypto.sha256(input.intent.metadata.secret)`, none},
		{"the other way round", `reason contains strings.reverse(input.intent.metadata.secret)`, none},
		{"destructuring", `reason contains msg if [_, msg] = ["a", input.intent.metadata.secret]`, none},
		{"an object pattern", `reason contains msg if {"secret": msg, "env": _, "n": _, "key_Can": _} = input.intent.metadata`, none},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := "package p\n\nmatch if true\n\n" + tt.source
			if strings.HasPrefix(tt.source, "import") {
				source = "package p\n\n" + tt.source + "\n\nmatch if true"
			}
			got, left := said(t, l, source, canaryInput(), nil)
			wantLeft := strings.HasPrefix(tt.want, "!")
			var want []string
			if rest := strings.TrimPrefix(tt.want, "!"); rest != "" {
				want = strings.Split(rest, "|")
			}
			if diff := cmp.Diff(want, got, cmp.Transformer("", func(s []string) string { return strings.Join(s, "|") })); diff != "" || left != wantLeft {
				t.Errorf("messages (-want +got), left out %v:\n%s\n%s", left, diff, source)
			}
		})
	}
}

// TestMessages_AreThoseOfReason checks that no other set has messages.
func TestMessages_AreThoseOfReason(t *testing.T) {
	for source, want := range map[string]string{
		"deny contains \"b\"": "",
		"deny contains \"b\"\n\nreason contains msg if some msg in deny":   "b",
		"deny if true\n\nreason contains \"a\"":                            "a",
		"allow if true\n\nreason contains \"a\"\n\nreasons contains \"b\"": "a",
		"match if true\n\nreason := \"a\"":                                 "",
	} {
		got, _ := said(t, new(Libraries), "package p\n\n"+source, canaryInput(), nil)
		if strings.Join(got, "|") != want {
			t.Errorf("messages = %q, want %q\n%s", got, want, source)
		}
	}
}

// TestMessages_HoldWhatIsKept checks that a message holds the kept form of a member, and that other
// members are compared as they are.
func TestMessages_HoldWhatIsKept(t *testing.T) {
	in := canaryInput()
	in.Resource, in.AgentID = "https://u:p@h/x?sig=1", "Team-A"
	in.Intent.ActionType = "Deploy"
	kept := &engine.Intent{Resource: "https://h/x", AgentID: "team-a", ActionType: "deploy-kept", IntentID: "id"}
	for source, want := range map[string]string{
		`reason contains input.intent.resource`:                                                                   "https://h/x",
		`reason contains input.agent.id`:                                                                          "team-a",
		`reason contains input.intent.agent_id`:                                                                   "team-a",
		`reason contains input.intent.action_type`:                                                                "deploy-kept",
		`reason contains input.intent.intent_id`:                                                                  "id",
		`reason contains "yes" if contains(input.intent.resource, "sig=1")`:                                       "yes",
		`reason contains input.agent.id if contains(input.intent.resource, "sig=1")`:                              "team-a",
		`reason contains input.intent.resource if contains(input.intent.resource, "sig=1")`:                       "",
		`reason contains input.intent.resource if input.intent.agent_id == "Team-A"`:                              "https://h/x",
		`reason contains substring(input.intent.resource, 0, 9)`:                                                  "https://h",
		`reason contains msg if { some c in ["sig", "h/"]; contains(input.intent.resource, c); msg := upper(c) }`: "H/",
		`reason contains sprintf("%s %s", [input.intent.action_type, input.intent.resource])`:                     "deploy-kept https://h/x",
	} {
		got, left := said(t, new(Libraries), "package p\n\nmatch if true\n\n"+source, in, kept)
		if strings.Join(got, "|") != want || left {
			t.Errorf("messages = %q, left out %v, want %q\n%s", got, left, want, source)
		}
	}
}

// TestMessages_AreRefused has the rules called reason that are no messages.
func TestMessages_AreRefused(t *testing.T) {
	for source, want := range map[string]string{
		"reason := \"no\"": "reason says why a rule decides, and it is one value: write `reason contains sprintf(",
		"reason := msg if msg := input.intent.resource":       "it is one value",
		"default reason := \"no\"":                            "a set has no default",
		"reason if true":                                      "it is one value",
		"reason[k] := 1 if some k in [\"a\"]":                 "it is an object",
		"reason.a contains \"no\"":                            "it is an object",
		"reason(_) := \"no\"":                                 "it is a function",
		"reason contains 7":                                   "it holds number, not texts",
		"reason contains {\"msg\": \"no\"}":                   "it holds object<msg: string>, not texts",
		"reason contains \"a\"\n\nreason contains {\"b\", 7}": "not texts",
	} {
		r := engine.Rule{Name: "r", Condition: marshal(map[string]string{"rego": "package p\n\nmatch if true\n\n" + source}), Action: `{"decision":"deny"}`}
		err := engine.ValidateRule(r, engine.Options{CompileRego: CompileCondition})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, want %q", source, err, want)
		}
		if set := engine.CompileRules([]engine.Rule{{Name: "r", IsActive: true, Condition: r.Condition, Action: r.Action}}, engine.Options{CompileRego: CompileCondition}); len(set.Broken()) > 0 {
			t.Errorf("%s, stored, = %v, want it to run", source, set.Broken()[0].Err)
		}
	}
}

// TestLowerCore_MessagesHoldNothingOfTheIntent checks that a core has no message that could hold a text of
// the intent. The core gets the intent as it is, and a row does not keep all of its texts.
func TestLowerCore_MessagesHoldNothingOfTheIntent(t *testing.T) {
	p := openPolicy()
	rules := []engine.Rule{{ID: "r", Name: "r", IsActive: true, Action: `{"decision":"deny","reason":"no"}`,
		Condition: marshal(map[string]string{"rego": "package p\n\nmatch if input.intent.resource\n\nreason contains \"a word\"\n\n" +
			"reason contains input.intent.resource\n\nreason contains input.agent.id\n\nreason contains input.intent.action_type\n\n" +
			"reason contains \"deploys\" if input.intent.action_type == \"deploy\""})}}
	files := must.Get(LowerCore([]*engine.ActionPolicy{p}, rules, nil))(t)
	got, _ := askCore(t, files, coreQuestion(t, p, rules, nil, coreInput(p))).(map[string]any)
	want := []any{`rule.deny: no (rule "r")`, `rule.deny: a word (rule "r")`, `rule.deny: deploys (rule "r")`}
	if diff := cmp.Diff(want, got["reasons"]); diff != "" {
		t.Errorf("the core's reasons (-want +got):\n%s", diff)
	}
}

// TestMessages_ChangeNoDecision checks that a message that fails, and one that takes more than the
// budget, are left out, and that messages have a budget of their own.
func TestMessages_ChangeNoDecision(t *testing.T) {
	const pairs = `count([1 | some a in split(input.intent.metadata.%[1]s, "/"); some b in split(input.intent.metadata.%[1]s, "/"); a != b]) == 0`
	much, half := fmt.Sprintf(pairs, "much"), fmt.Sprintf(pairs, "half")
	in := coreInput(openPolicy())
	in.Intent.Metadata = map[string]string{"much": strings.Repeat("/", 4000)}
	for n := 10; ; n += 10 { // until half takes more than half of the budget
		in.Intent.Metadata["half"] = strings.Repeat("/", n)
		work := new(condition.Work)
		all := work.Left()
		must.Get(must.Get(CompileCondition(half))(t).Match(&engine.RegoInput{Intent: in.Intent, Policy: openPolicy(), Work: work}))(t)
		if work.Left() < all/2 {
			break
		}
	}
	policy := must.Get(engine.CompilePolicy(openPolicy()))(t)
	for name, tt := range map[string]struct {
		match, reasons string
		want           []string
	}{
		"one fails":                      {"true", "reason contains sprintf(\"%d\", [to_number(input.intent.resource)])\n\nreason contains \"a\"", []string{"a"}},
		"all fail":                       {"true", "reason contains sprintf(\"%d\", [to_number(input.intent.resource)])", nil},
		"one takes more than the budget": {"true", "reason contains \"a\"\n\nreason contains \"b\" if " + much, nil},
		"together they take more":        {"true", "reason contains \"a\" if " + half + "\n\nreason contains \"b\" if " + half, nil},
		"match takes half":               {half, "reason contains \"a\" if " + half, []string{"a"}},
	} {
		for _, outcome := range []string{"deny", "allow", "approval_required"} {
			set := engine.CompileRules([]engine.Rule{{ID: "r", Name: "r", IsActive: true, Action: `{"decision":"` + outcome + `","reason":"no"}`,
				Condition: marshal(map[string]string{"rego": "package p\n\nmatch if " + tt.match + "\n\n" + tt.reasons})}},
				engine.Options{CompileRego: CompileCondition})
			got := engine.Evaluate(policy, set, in)
			want := []string{"rule." + outcome + `: no (rule "r")`}
			for _, text := range tt.want {
				want = append(want, "rule."+outcome+": "+text+` (rule "r")`)
			}
			if diff := cmp.Diff(want, got.Reasons()); diff != "" || got.Decision.String() != outcome || got.ConditionErrors.Total() > 0 || got.Err != nil {
				t.Errorf("%s: %v, %+v, broken %v (-want +got):\n%s", name, got.Decision, got.ConditionErrors, set.Broken(), diff)
			}
		}
	}
}
