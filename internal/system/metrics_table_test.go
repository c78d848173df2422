package system

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

const metricsTable = "../../docs/metrics.md"

// metricRow is a row of docs/metrics.md:
//
//	| `name` | type | `label`: `value` `value`; `label` | unit | help | when to alert |
//
// A label without values takes values that the row does not list.
type metricRow struct {
	name, kind, unit, help string
	labels                 map[string][]string
}

var quoted = regexp.MustCompile("`([^`]+)`")

// readMetricsTable returns the rows by name.
func readMetricsTable(t *testing.T) map[string]metricRow {
	t.Helper()
	text, err := os.ReadFile(metricsTable)
	must(t, err)
	rows := make(map[string]metricRow)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		name, ok := strings.CutPrefix(cells[0], "| `writ_")
		if !ok {
			continue
		}
		if len(cells) != 6 {
			t.Fatalf("docs/metrics.md: %d columns, want 6: %s", len(cells), line)
		}
		row := metricRow{
			name: "writ_" + strings.TrimSuffix(name, "`"), kind: cells[1], unit: cells[3], help: cells[4],
			labels: make(map[string][]string),
		}
		for label := range strings.SplitSeq(cells[2], ";") {
			if words := quoted.FindAllStringSubmatch(label, -1); len(words) > 0 {
				values := []string{}
				for _, w := range words[1:] {
					values = append(values, w[1])
				}
				row.labels[words[0][1]] = values
			}
		}
		if _, twice := rows[row.name]; twice {
			t.Errorf("docs/metrics.md has two rows for %s", row.name)
		}
		rows[row.name] = row
	}
	return rows
}

// compare reports the differences between the row and the metric.
func (r metricRow) compare(t *testing.T, f *dto.MetricFamily) {
	t.Helper()
	if kind := strings.ToLower(f.GetType().String()); kind != r.kind {
		t.Errorf("docs/metrics.md says that %s is a %s, it is a %s", r.name, r.kind, kind)
	}
	if r.help != f.GetHelp() {
		t.Errorf("docs/metrics.md says of %s %q, its help is %q", r.name, r.help, f.GetHelp())
	}
	for _, unit := range []string{"seconds", "bytes"} {
		if named := slices.Contains(strings.Split(r.name, "_"), unit); named != (unit == r.unit) {
			t.Errorf("docs/metrics.md says that the unit of %s is %q", r.name, r.unit)
		}
	}
	got := make(map[string][]string)
	for _, m := range f.GetMetric() {
		for _, label := range m.GetLabel() {
			values := got[label.GetName()]
			if len(r.labels[label.GetName()]) > 0 && !slices.Contains(values, label.GetValue()) {
				values = append(values, label.GetValue())
			}
			got[label.GetName()] = values
		}
	}
	if diff := cmp.Diff(sorted(r.labels), sorted(got)); diff != "" {
		t.Errorf("labels of %s: docs/metrics.md -, /metrics +:\n%s", r.name, diff)
	}
}

func sorted(labels map[string][]string) map[string][]string {
	all := make(map[string][]string, len(labels))
	for name, values := range labels {
		all[name] = slices.Sorted(slices.Values(values))
	}
	return all
}

// TestMetrics_TableHasEveryNameInTheSource checks that every metric in the source has a row.
// /metrics shows some metrics only after an event.
func TestMetrics_TableHasEveryNameInTheSource(t *testing.T) {
	source := make(map[string]bool)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && metricName.MatchString(s) {
					source[s] = true
				}
			}
			return true
		})
		return nil
	})
	must(t, err)
	rows := slices.Sorted(maps.Keys(readMetricsTable(t)))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(source)), rows); diff != "" {
		t.Errorf("names of metrics: source -, docs/metrics.md +:\n%s", diff)
	}
}

var metricName = regexp.MustCompile(`^writ_[a-z][a-z0-9_]*[a-z0-9]$`)

// TestMetrics_AlertsNameMetricsThatExist checks that every metric exists in the table that
// alerts, dashboards and the text of docs/metrics.md name.
func TestMetrics_AlertsNameMetricsThatExist(t *testing.T) {
	rows := readMetricsTable(t)
	dashboards, err := filepath.Glob(grafanaDir + "/dashboards/*.json")
	must(t, err)
	for _, file := range append(dashboards, metricsTable, alertsFile) {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, name := range regexp.MustCompile(`\bwrit_[a-z0-9_]+\b`).FindAllString(string(text), -1) {
			base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if row, ok := rows[base]; !ok || base != name && row.kind != "histogram" {
				t.Errorf("%s names %s, of which the table of metrics knows nothing", file, name)
			}
		}
	}
}

// selector is a metric in the query of an alert, with the labels that it must have.
type selector struct{ name, labels string }

// alertSelectors returns the metrics that alerts need from the first scrape on. These are all
// metrics in the alerts, with three exceptions. Rates of histograms have no value before the
// first observation. The metrics of the external core, and those whose names begin with absent,
// are not there.
func alertSelectors(t *testing.T, absent string) []selector {
	t.Helper()
	rows := readMetricsTable(t)
	var all []selector
	for _, r := range readAlerts(t) {
		for _, m := range regexp.MustCompile(`\b(writ_[a-z0-9_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(r.Expr, -1) {
			if rows[m[1]].kind == "" || strings.HasPrefix(m[1], "writ_core_") || strings.HasPrefix(m[1], absent) {
				continue
			}
			all = append(all, selector{m[1], m[2]})
		}
	}
	if len(all) < 15 {
		t.Fatalf("read %d selectors of alerts, want all: %v", len(all), all)
	}
	return all
}

var matcher = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)

// matches reports whether the selector selects a sample. It follows Prometheus' rules.
func (s selector) matches(sample string) bool {
	name, labels, _ := strings.Cut(strings.TrimSuffix(sample, "}"), "{")
	if name != s.name {
		return false
	}
	got := make(map[string]string)
	for _, m := range matcher.FindAllStringSubmatch(labels, -1) {
		got[m[1]] = m[3]
	}
	for _, m := range matcher.FindAllStringSubmatch(s.labels, -1) {
		equal := got[m[1]] == m[3]
		if strings.HasSuffix(m[2], "~") {
			equal = regexp.MustCompile("^(?:" + m[3] + ")$").MatchString(got[m[1]])
		}
		if equal == strings.HasPrefix(m[2], "!") {
			return false
		}
	}
	return true
}
