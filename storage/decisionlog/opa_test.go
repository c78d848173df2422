package decisionlog_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/receipt"
)

// TestOPA checks that each member of a row is where users of OPA look for it. internal/system decodes
// events with OPA's own type.
func TestOPA(t *testing.T) {
	at := time.Date(2026, 11, 27, 20, 0, 0, 123456789, time.UTC)
	row := &storage.Record{
		OrganizationID: "acme", IntentID: "i", PolicyID: "p", PolicyVersion: 3, RulesRevision: 57, DecisionID: "d",
		AgentID: "bot", ActionType: "deploy", Resource: "k8s/prod", IssuedAt: "2026-11-27T19:59:00Z",
		Cost: &engine.Cost{AmountMinor: 5, Currency: "EUR"}, MetadataKeys: []string{"a/b", "env"},
		Metadata: map[string]string{"env": "prod"}, Decision: engine.Deny, Reasons: []string{"rule.deny: no"},
		Findings:  []storage.Finding{{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: "r"}},
		DecidedAt: at, Credential: "key-1", LeftOut: []string{"issued_at", "metadata", "metadata.a/b~c"}, IntentDigest: "sha256:1",
		Receipt: receipt.Receipt{Digest: "sha256:2", Decision: "deny", DecisionID: "d", Exp: 1, Sig: "s", KeyID: "k"},
	}
	text, err := decisionlog.OPA(row)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"labels": map[string]any{"app": "writ", "organization_id": "acme"}, "decision_id": "d", "path": "writ/core/result",
		"erased":       []any{"/input/intent/issued_at", "/input/intent/metadata", "/input/intent/metadata/a~1b~0c"},
		"requested_by": "key-1", "timestamp": "2026-11-27T20:00:00.123456789Z",
		"input": map[string]any{"intent": map[string]any{
			"intent_id": "i", "policy_id": "p", "agent_id": "bot", "action_type": "deploy", "resource": "k8s/prod",
			"cost": map[string]any{"amount_minor": 5.0, "currency": "EUR"}, "metadata": map[string]any{"env": "prod"},
			"issued_at": "2026-11-27T19:59:00Z",
		}},
		"result": map[string]any{
			"decision": "deny", "reasons": []any{"rule.deny: no"}, "policy_version": 3.0, "rules_revision": 57.0,
			"findings": []any{map[string]any{"code": "rule.deny", "outcome": "deny", "decides": true, "rule_id": "r"}},
		},
		"custom": map[string]any{
			"intent_digest": "sha256:1", "metadata_keys": []any{"a/b", "env"},
			"receipt": map[string]any{"digest": "sha256:2", "decision": "deny", "decision_id": "d", "exp": 1.0, "sig": "s", "kid": "k"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the event: -want +got\n%s", diff)
	}
}
