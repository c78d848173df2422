package rego

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// itemTexts has values of metadata.to that programs read in several ways.
var itemTexts = []string{
	"", "ana@ours.example", "Ana <ana@OURS.example>; bob@ours.example", "evil@evil.example;a@ours.example", "<evil@evil.example>@ours.example",
	"eve@rival.example;ana@ours.example", "Eve <eve@rival.example>", "eve@RIVAL.example", "eve@rival.example.", `"eve@evil.example x"@ours.example`, "ana@ours.example and others",
	`["ana@ours.example","Eve <eve@rival.example>"]`, "a, b ;c", "mailto:ana@ours.example?cc=eve@rival.example", "eve@rival。example", `"x, y" <a@ours.example>`, "@", "a@b@c",
}

// TestDecision_Lists_ItemsInRego checks "`items()` in CEL and `writ.items` in Rego give the addresses and what remains": a
// condition decides the same in CEL, in Rego, and in Rego as it is exported, also if the same text stands under two keys.
func TestDecision_Lists_ItemsInRego(t *testing.T) {
	const module = "package any.name\n\n# ours says whose an address is.\nours(a) if endswith(a, \"@ours.example\")\n\n"
	conditions := []struct{ cel, rego string }{
		{`"to" in intent.metadata && items(intent.metadata.to).all(a, a.endsWith("@ours.example"))`, `every a in writ.items(input.intent.metadata.to) { endswith(a, "@ours.example") }`},
		{`"to" in intent.metadata && items(intent.metadata.to).exists(a, a.endsWith("@rival.example"))`, "some a in writ.items(input.intent.metadata.to)\nendswith(a, \"@rival.example\")"},
		{`"to" in intent.metadata && items(intent.metadata.to).size() > 1`, `count(writ.items(input.intent.metadata.to)) > 1`},
		{`"to" in intent.metadata && items(intent.metadata.to).all(a, a.endsWith("@ours.example"))`, module + "match if every a in writ.items(input.intent.metadata.to) { ours(a) }"},
		{`"cc" in intent.metadata && "to" in intent.metadata && items(intent.metadata.cc) == items(intent.metadata.to)`, module + "match if {\n\tto := writ.items(input.intent.metadata.to)\n\tto == [a | some a in writ.items(input.intent.metadata.cc)]\n}"},
		{`"to" in intent.metadata && !items(intent.metadata.to).exists(a, a.endsWith("@ours.example"))`, module + "theirs(text) if not has_ours(text)\n\nhas_ours(text) if {\n\tsome a in writ.items(text)\n\tours(a)\n}\n\nmatch if theirs(input.intent.metadata.to)"},
	}
	r := rand.New(rand.NewPCG(5, 29))
	parts := []string{"ana@ours.example", "eve@RIVAL.example", " ", ",", ";", `"`, "<", ">", "(", ")", "Ana", "@", "mailto:", "\n", "[", `["x@ours.example"]`, "?cc=", "ß.example", ":"}
	texts := slices.Clone(itemTexts)
	for range 150 {
		text := ""
		for range 1 + r.IntN(7) {
			text += parts[r.IntN(len(parts))]
		}
		texts = append(texts, text)
	}
	policy := &engine.ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive, UpdatedAt: time.Unix(0, 0),
		AllowedActionTypes: []string{"*"},
	}
	compiled := must.Get(engine.CompilePolicy(policy))(t)
	for i, c := range conditions {
		for _, outcome := range []string{"deny", "allow"} {
			rule := func(kind, source string) []engine.Rule {
				doc := string(must.Get(json.Marshal(map[string]string{kind: source}))(t))
				rules := []engine.Rule{{ID: "1", Name: "asked", Condition: doc, Action: fmt.Sprintf(`{"decision":%q}`, outcome), Priority: 2, IsActive: true}}
				if outcome == "allow" {
					rules = append(rules, engine.Rule{ID: "2", Name: "rest", Condition: "{}", Action: `{"decision":"deny"}`, Priority: 1, IsActive: true})
				}
				return rules
			}
			set := func(rules []engine.Rule) *engine.RuleSet {
				s := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition})
				if broken := s.Broken(); len(broken) > 0 {
					t.Fatalf("condition %d: %v", i, broken)
				}
				return s
			}
			inRego := rule("rego", c.rego)
			cel, rego, query := set(rule("cel", c.cel)), set(inRego), must.Get(Prepare(policy, inRego, nil))(t)
			seen := map[engine.Decision]bool{}
			for k, text := range texts {
				metadata := map[string]string{"to": text, "cc": texts[(k+r.IntN(2))%len(texts)]}
				if k%29 == 28 {
					metadata = nil
				}
				in := &engine.Input{Agent: engine.AgentActive, Intent: &engine.Intent{
					IntentID: policy.PolicyID, PolicyID: policy.PolicyID, AgentID: "agent", ActionType: "email.send", Resource: "outbox",
					IssuedAt: "2026-01-02T03:04:05Z", Metadata: metadata,
				}}
				want, got := engine.Evaluate(compiled, cel, in).Decision, engine.Evaluate(compiled, rego, in).Decision
				exported, _, err := query.Evaluate(in)
				if got != want || exported != want || err != nil {
					t.Errorf("condition %d (%s) of %q: %v in Rego, %v, %v exported, want %v as in CEL", i, outcome, metadata, got, exported, err, want)
				}
				seen[want] = true
			}
			if !seen[engine.Allow] || !seen[engine.Deny] {
				t.Errorf("condition %d (%s) decides %v, want both", i, outcome, seen)
			}
		}
	}
}

func TestItems_AreChecked(t *testing.T) {
	for _, tt := range []struct{ source, want string }{
		{`count(writ.items(5)) > 1`, "1:7: writ.items: invalid argument(s)"},
		{`writ.items(input.intent.metadata.to) == "a"`, "match error: array[string] is not string"},
		{`count(writ.items("a,b")) > 1`, "1:18: writ.items reads a metadata value, not a constant"},
		{`count(writ.item(input.intent.metadata.to)) > 1`, "did you mean writ.items?"},
		{"package a\n\nmatch if f with count as writ.items\n\nf if count([]) == 0", "writ"},
	} {
		if _, err := CompileCondition(tt.source); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("CompileCondition(%q) = %v, want %q", tt.source, err, tt.want)
		}
	}
}

// TestItems_OfAnotherText checks that a text that the exported input cannot have read is an error, and not the text.
func TestItems_OfAnotherText(t *testing.T) {
	c := must.Get(CompileCondition(`count(writ.items(concat("", [input.intent.metadata.to, "x"]))) > 0`))(t)
	in := sampleInput()
	in.Intent.Metadata = map[string]string{"to": "ana@ours.example"}
	if got, err := c.Match(in); got || err == nil || !strings.Contains(err.Error(), "no metadata value") || strings.Contains(err.Error(), "ana") {
		t.Errorf("Match = %v, %v, want an error that does not show the text", got, err)
	}
}

// TestItems_AreCharged checks that a loop over writ.items ends by its steps, and that a longer text is charged more.
func TestItems_AreCharged(t *testing.T) {
	spent := func(source, text string) (int, error) {
		c := must.Get(CompileCondition(source))(t)
		in := sampleInput()
		in.Intent.Metadata, in.Work = map[string]string{"to": text}, new(condition.Work)
		before := in.Work.Left()
		_, err := c.Match(in)
		return before - in.Work.Left(), err
	}
	long := strings.Repeat("a@b.example,", condition.MaxText/12)
	short, err := spent(`count(writ.items(input.intent.metadata.to)) > 0`, "a@b.example")
	more, err2 := spent(`count(writ.items(input.intent.metadata.to)) > 0`, long)
	if err != nil || err2 != nil || more < short+condition.MaxText*stepsPerRead {
		t.Errorf("a long text takes %d steps, a short one %d (%v, %v)", more, short, err, err2)
	}
	if _, err := spent("some n in numbers.range(1, 1000)\ncount(writ.items(input.intent.metadata.to)) == n", long); err == nil {
		t.Error("a thousand calls with a long text are not too much")
	}
}

// TestItems_InTests checks that an author's tests see the items in the modules under test.
func TestItems_InTests(t *testing.T) {
	policy := &engine.ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive, UpdatedAt: time.Unix(0, 0),
		AllowedActionTypes: []string{"*"},
	}
	rules := []engine.Rule{{
		ID: "1", Name: "outsiders", Condition: `{"rego":"some a in writ.items(input.intent.metadata.to)\nnot endswith(a, \"@ours.example\")"}`,
		Action: `{"decision":"deny"}`, Priority: 1, IsActive: true,
	}}
	intents := map[string]*engine.Input{}
	for i, text := range itemTexts {
		intents[fmt.Sprint("t", i)] = &engine.Input{Agent: engine.AgentActive, Intent: &engine.Intent{
			IntentID: policy.PolicyID, PolicyID: policy.PolicyID, AgentID: "agent", ActionType: "email.send", Resource: "outbox",
			IssuedAt: "2026-01-02T03:04:05Z", Metadata: map[string]string{"to": text},
		}}
	}
	files := must.Get(Tests(policy, rules, nil, intents))(t)
	results := must.Get(RunTests(context.Background(), policy, rules, nil, intents, files[1:2]))(t)
	for _, r := range results {
		if r.Outcome != TestPassed {
			t.Errorf("%s: %s %s", r.Name, r.Outcome, r.Message)
		}
	}
	if len(results) != len(itemTexts) {
		t.Errorf("%d tests ran, want %d", len(results), len(itemTexts))
	}
}
