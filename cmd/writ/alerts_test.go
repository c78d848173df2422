package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const alertsFile = "../../docs/alerts.yml"

// TestAlerts_PrometheusReadsThem has Prometheus' own parser read the rules.
func TestAlerts_PrometheusReadsThem(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds the parser of Prometheus' rules")
	}
	dir := filepath.Join("..", "..", "tools", "alerts")
	if out, err := exec.Command("go", "-C", dir, "list", "-deps", ".").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of Prometheus' parser cannot be had: %v: %.500s", err, out)
	}
	bin := filepath.Join(t.TempDir(), "alerts")
	if out, err := exec.Command("go", "-C", dir, "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the parser: %v\n%s", err, out)
	}
	if out, err := exec.Command(bin, alertsFile).CombinedOutput(); err != nil {
		t.Errorf("Prometheus refuses docs/alerts.yml: %v\n%s", err, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.yml")
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), "[1h])", "[1h]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(bin, broken).CombinedOutput(); err == nil {
		t.Errorf("the parser takes a broken expression: %s", out)
	}
}

// TestDecision_Audit_UnapprovedActionsAreAlertedOn: "executed for a decision that did
// not allow is … counted by a metric and alerted on". Every rule says for how
// long, how severe, what it means and what to do.
func TestDecision_Audit_UnapprovedActionsAreAlertedOn(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	alerted := false
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if r.For == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) ||
				!strings.HasSuffix(r.Annotations["summary"], ".") || !strings.HasSuffix(r.Annotations["runbook"], ".") {
				t.Errorf("%s has for %q, severity %q, summary %q, runbook %q: want all, the last two as sentences",
					r.Alert, r.For, r.Labels["severity"], r.Annotations["summary"], r.Annotations["runbook"])
			}
			alerted = alerted || strings.Contains(r.Expr, "writ_unapproved_actions_total")
		}
	}
	if !alerted {
		t.Error("no rule alerts on writ_unapproved_actions_total")
	}
}
