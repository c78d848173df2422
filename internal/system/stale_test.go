package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOPATest_DecidesByNoStaleReadings changes the resource of an exported intent in two ways, and derives
// the input again. A real `opa test` must decide by the new resource.
func TestOPATest_DecidesByNoStaleReadings(t *testing.T) {
	opa := buildOPA(t)
	out := t.TempDir()
	args := []string{"rego", "--policy", "../../examples/policies/deploys.yaml", "--rules", "../../examples/rules.yaml",
		"--input", "../../examples/intents/deploys/staging.json", "--out", out}
	if text, err := command(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("writ %v: %v\n%s", args, err, text)
	}
	must(t, os.WriteFile(filepath.Join(out, "stale_test.rego"), []byte(`package stale_test

blocked := {"intent": {"resource": "k8s/prod/payments/db"}}

test_union if "resource.blocked" in data.writ.policy.codes with input as object.union(data.intents.staging, blocked)

test_with if "resource.blocked" in data.writ.policy.codes with input as data.intents.staging
	with input.intent.resource as "k8s/prod/payments/db"

test_of if {
	intent := object.union(data.intents.staging.intent, blocked.intent)
	"resource.blocked" in data.writ.policy.codes with input as data.writ.input.of(intent)
}

test_other if "check.error" in data.writ.policy.codes with input as data.intents.staging
	with input.intent.resource as "k8s/staging/x/../web"
`), 0o600))
	text, err := exec.Command(opa, "test", out).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "PASS: 5/5") {
		t.Errorf("opa test: %v, want PASS: 5/5\n%s", err, text)
	}
}
