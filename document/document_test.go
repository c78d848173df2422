package document

import (
	"os"
	"strings"
	"testing"

	"writ/engine"
	"writ/rego"
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
	y, err := Parse("a.yaml", []byte(asYAML))
	if err != nil {
		t.Fatal(err)
	}
	j, err := Parse("a.json", []byte(asJSON))
	if err != nil {
		t.Fatal(err)
	}
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

func TestParse_ReadsTheExamples(t *testing.T) {
	for _, name := range []string{"../examples/rules.json", "../examples/policies/payments.json"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		docs, err := Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			if d.Kind == Rule {
				_, err = d.Rule(options)
			} else {
				_, err = d.Policy()
			}
			if err != nil {
				t.Error(err)
			}
		}
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
	docs, err := Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = docs[0].Policy()
	for _, want := range []string{"p.yaml:2:10: policy.version: ", "p.yaml:5:1: policy.allowed_action_typs: ", "p.yaml:8:5: policy.denied_action_types[1]: ", "p.yaml:9:9: policy.status: ", "p.yaml:1:1: policy.updated_at: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Policy = %v, want %s…", err, want)
		}
	}
}
