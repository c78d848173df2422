package system

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	prometheusDir = "../../deploy/prometheus"
	alertsFile    = prometheusDir + "/alerts.yml"
)

// alertRule is a rule of alertsFile.
type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// readAlerts returns the alerts of alertsFile.
func readAlerts(t *testing.T) []alertRule {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	must(t, err)
	var file struct{ Groups []struct{ Rules []alertRule } }
	must(t, yaml.Unmarshal(text, &file))
	var alerts []alertRule
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			if r.Alert != "" { // the others record series
				alerts = append(alerts, r)
			}
		}
	}
	if len(alerts) < 30 {
		t.Fatalf("%s has %d alerts, want 30 or more", alertsFile, len(alerts))
	}
	return alerts
}

// TestAlerts_PrometheusReadsThem checks that Prometheus' own parser can read the rules.
func TestAlerts_PrometheusReadsThem(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds the parser of Prometheus' rules")
	}
	bin := buildTool(t, "alerts")
	if out, err := exec.Command(bin, alertsFile).CombinedOutput(); err != nil {
		t.Errorf("Prometheus refuses %s: %v\n%s", alertsFile, err, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.yml")
	text, err := os.ReadFile(alertsFile)
	must(t, err)
	must(t, os.WriteFile(broken, []byte(strings.Replace(string(text), "[1h])", "[1h]", 1)), 0o600))
	if out, err := exec.Command(bin, broken).CombinedOutput(); err == nil {
		t.Errorf("the parser takes a broken expression: %s", out)
	}
}

// TestAlerts_FireUnderTheirFaults checks the alerts with a real promtool. promtool checks
// Prometheus' scrape configuration and runs alerts_test.yml, which must name every alert.
func TestAlerts_FireUnderTheirFaults(t *testing.T) {
	promtool := needDebian(t, "usr/bin/promtool", "prometheus")
	for _, args := range [][]string{
		{"check", "config", prometheusDir + "/prometheus.yml"},
		{"test", "rules", prometheusDir + "/alerts_test.yml"},
	} {
		if out, err := promtool.command(t.Context(), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
	tests, err := os.ReadFile(prometheusDir + "/alerts_test.yml")
	must(t, err)
	for _, r := range readAlerts(t) {
		if !strings.Contains(string(tests), `alertname="`+r.Alert+`"`) {
			t.Errorf("alerts_test.yml does not fire %s", r.Alert)
		}
	}
}

// TestDecision_Audit_UnapprovedActionsAreAlertedOn checks the promise "executed for a decision
// that did not allow is … counted by a metric and alerted on".
func TestDecision_Audit_UnapprovedActionsAreAlertedOn(t *testing.T) {
	if !slices.ContainsFunc(readAlerts(t), func(r alertRule) bool { return strings.Contains(r.Expr, "writ_unapproved_actions_total") }) {
		t.Error("no rule alerts on writ_unapproved_actions_total")
	}
}

// TestAlerts_SayWhatToDo checks that every rule has a duration, a severity, a summary and a
// link to its own section: of docs/alerts.md if it can page, otherwise of docs/tickets.md.
func TestAlerts_SayWhatToDo(t *testing.T) {
	const pages, tickets = "docs/alerts.md", "docs/tickets.md"
	sections := map[string]map[string]bool{pages: anchors(t, "../../"+pages), tickets: anchors(t, "../../"+tickets)}
	all := readAlerts(t)
	for _, r := range all {
		page := tickets
		if slices.ContainsFunc(all, func(same alertRule) bool { return same.Alert == r.Alert && same.Labels["severity"] == "page" }) {
			page = pages
		}
		if r.For == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) || !strings.HasSuffix(r.Annotations["summary"], ".") {
			t.Errorf("%s has for %q, severity %q, summary %q: want all, the last a sentence", r.Alert, r.For, r.Labels["severity"], r.Annotations["summary"])
		}
		want := page + "#" + strings.ToLower(r.Alert)
		if got := r.Annotations["runbook_url"]; got != want || !sections[page][strings.ToLower(r.Alert)] {
			t.Errorf("%s has the runbook %q, want %q, which must be a section", r.Alert, got, want)
		}
	}
}

// TestDocs_LinksExist checks the links of README.md and of each page of docs/ to pages, files and
// their sections. It also checks that README.md leads to every page.
func TestDocs_LinksExist(t *testing.T) {
	led := make(map[string]bool)
	for _, page := range pages(t) {
		for _, link := range regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)\s]+))?\)`).FindAllStringSubmatch(readText(t, page), -1) {
			target := page
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(page), link[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			} else if link[2] != "" && !anchors(t, target)[link[2]] {
				t.Errorf("%s links to %s#%s, which does not exist", page, link[1], link[2])
			}
			led[target] = led[target] || filepath.Base(page) == "README.md"
		}
	}
	for _, page := range pages(t) {
		if filepath.Base(page) != "README.md" && !led[page] {
			t.Errorf("README.md does not link to %s", page)
		}
	}
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, name string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	all := make(map[string]bool)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		words := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all[strings.ReplaceAll(words, " ", "-")] = true
	}
	return all
}
