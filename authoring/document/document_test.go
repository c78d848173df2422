package document

import (
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

var options = engine.Options{CompileRego: rego.CompileCondition}

func TestParse_YAMLAndJSONAreTheSame(t *testing.T) {
	const asYAML = `# yaml-language-server: $schema=rule.schema.json
name: Large payments # of one line
condition:
  all:
    - {field: action_type, op: in, value: [payment.refund, payment.payout]}
    - {field: cost.amount_minor, op: gt, value: 25000}
action: {decision: approval_required, reason: "finance: looks"}
priority: 200
isActive: true
createdAt: 2026-11-01T09:00:00Z
---
name: In Rego
condition:
  rego: |
    startswith(input.intent.resource, "k8s/")
    input.intent.metadata.window == "freeze"
action: {decision: deny}
`
	const asJSON = `[{"name": "Large payments",
"condition": {"all": [{"field": "action_type", "op": "in", "value": ["payment.refund", "payment.payout"]}, {"field": "cost.amount_minor", "op": "gt", "value": 25000}]},
"action": "{\"decision\":\"approval_required\",\"reason\":\"finance: looks\"}",
"priority": 200, "isActive": true, "createdAt": "2026-11-01T09:00:00Z"},
{"name": "In Rego", "condition": {"rego": "startswith(input.intent.resource, \"k8s/\")\ninput.intent.metadata.window == \"freeze\"\n"}, "action": {"decision": "deny"}}]`
	y := must.Get(Parse("a.yaml", []byte(asYAML)))(t)
	j := must.Get(Parse("a.json", []byte(asJSON)))(t)
	if len(y) != 2 || len(j) != 2 {
		t.Fatalf("Parse = %d and %d documents, want 2 and 2", len(y), len(j))
	}
	for i := range y {
		if y[i].Kind != Rule || string(y[i].JSON()) != string(j[i].JSON()) {
			t.Errorf("document %d is a %s, %s, and %s", i, y[i].Kind, y[i].JSON(), j[i].JSON())
		}
		if _, err := y[i].Rule(options); err != nil {
			t.Error(err)
		}
	}
}

func TestDocument_RuleHasTheDefaultsOfTheAPI(t *testing.T) {
	docs := must.Get(Parse("r.yaml", []byte("name: x\ncondition: {}\naction: {decision: deny}\n")))(t)
	r := must.Get(docs[0].Rule(options))(t)
	if doc := r.Rule(); doc.Priority != engine.DefaultPriority || !doc.IsActive {
		t.Errorf("Rule = priority %d, active %v, want %d, true", doc.Priority, doc.IsActive, engine.DefaultPriority)
	}
}

// TestDocument_Ignores checks that a comment with a name and a reason silences a warning. The
// comment may be at the end of the warned line or above the line.
func TestDocument_Ignores(t *testing.T) {
	const text = `name: x
condition: {metadata.env: prod} # writ:ignore unguarded-key it is optional
action: {decision: deny}
---
name: y
# A note.
# writ:ignore unguarded-key it is optional
condition:
  metadata.env: prod
action: {decision: deny}
---
# writ:ignore unguarded-key
name: z # writ:ignore unguarded-key a comment elsewhere
condition: {metadata.env: prod} # writ:ignore unguarded-key
action: {decision: deny}
`
	docs, err := Parse("r.yaml", []byte(text))
	if err != nil || len(docs) != 3 {
		t.Fatalf("Parse = %d, %v, want three documents", len(docs), err)
	}
	for i, want := range []bool{true, true, false} {
		if got := docs[i].Ignores("condition", "unguarded-key"); got != want {
			t.Errorf("Ignores of document %d = %v, want %v", i, got, want)
		}
		if docs[i].Ignores("condition", "shadowed") {
			t.Errorf("document %d: a comment silences what it does not name", i)
		}
	}
	bad := BadIgnores("r.yaml", []byte(text), []string{"unguarded-key"})
	if len(bad) != 2 || bad[0].Line != 12 || bad[1].Line != 14 {
		t.Errorf("BadIgnores = %v, want those of lines 12 and 14, which have no reason", bad)
	}
}

func TestProblem_CaretOfALongLine(t *testing.T) {
	p := Problem{Place: Place{1, 201}, Source: strings.Repeat("a", 200) + "X" + strings.Repeat("b", 200)}
	line, caret, _ := strings.Cut(p.Caret(), "\n")
	if n := len([]rune(line)); n != MaxLine || []rune(line)[strings.Index(caret, "^")] != 'X' {
		t.Errorf("Caret = %d characters, %q, want %d and the caret below X", n, p.Caret(), MaxLine)
	}
}

func TestError_HasEveryPlace(t *testing.T) {
	const text = `policy_id: 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10
version: "1"
organization_id: demo
agent_id: "*"
allowed_action_typs: [x]
denied_action_types:
  - a
  - 5
status: Active
`
	docs := must.Get(Parse("p.yaml", []byte(text)))(t)
	_, err := docs[0].Policy()
	for _, want := range []string{"p.yaml:2:10: policy.version: ", "p.yaml:5:1: policy.allowed_action_typs: ", "p.yaml:8:5: policy.denied_action_types[1]: ", "p.yaml:9:9: policy.status: ", "p.yaml:1:1: policy.updated_at: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Policy = %v, want %s…", err, want)
		}
	}
}
