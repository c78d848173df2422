package system

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const grafanaDir = "../../deploy/grafana"

// dashboard has the parts of a Grafana dashboard that the tests check.
type dashboard struct {
	file          string
	UID, Title    string
	SchemaVersion int
	Templating    struct{ List []struct{ Name string } }
	Panels        []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ RefID, Expr, LegendFormat string }
}

// readDashboards returns every dashboard of the deployment.
func readDashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob(grafanaDir + "/dashboards/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("found the dashboards %v, %v, want three", files, err)
	}
	var all []dashboard
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		d := dashboard{file: filepath.Base(file)}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	return all
}

// ofGrafana has test values for the variables that Grafana sets itself.
var ofGrafana = map[string]string{"__rate_interval": "1m", "__range": "1m"}

var variable = regexp.MustCompile(`\$(\w+)`)

// TestDashboards_AreWellFormed checks the members of a dashboard that Grafana requires. Without
// such a member Grafana shows "No data" or nothing.
func TestDashboards_AreWellFormed(t *testing.T) {
	source := readDatasource(t)
	uids := make(map[string]bool)
	for _, d := range readDashboards(t) {
		if d.SchemaVersion != 39 || d.Title == "" || d.UID+".json" != d.file || uids[d.UID] {
			t.Errorf("%s: schemaVersion %d, title %q, uid %q: want 39, a title, the name of the file", d.file, d.SchemaVersion, d.Title, d.UID)
		}
		uids[d.UID] = true
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		ids := make(map[int]bool)
		for i, p := range d.Panels {
			if ids[p.ID] || p.ID == 0 || p.Title == "" || !strings.HasSuffix(p.Description, ".") || len(p.Targets) == 0 {
				t.Errorf("%s: panel %d %q, %q, %d queries: want an id of its own, a title, a sentence, a query", d.file, p.ID, p.Title, p.Description, len(p.Targets))
			}
			ids[p.ID] = true
			if p.Datasource.Type != "prometheus" || p.Datasource.UID != source {
				t.Errorf("%s: panel %q asks the source %+v, want that of the provisioning, %s", d.file, p.Title, p.Datasource, source)
			}
			for _, q := range d.Panels[:i] {
				if a, b := p.GridPos, q.GridPos; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: panels %q and %q overlap", d.file, p.Title, q.Title)
				}
			}
			if p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %q does not fit: %+v", d.file, p.Title, p.GridPos)
			}
			for _, target := range p.Targets {
				for _, v := range variable.FindAllStringSubmatch(target.Expr, -1) {
					if ofGrafana[v[1]] == "" && !slices.Contains(variables, v[1]) {
						t.Errorf("%s: panel %q asks for $%s, which does not exist", d.file, p.Title, v[1])
					}
				}
			}
		}
	}
}

// TestDashboards_TellNoOrganizationsOrAgentsApart checks the labels in the queries of panels. No
// query may use a label for an organization or an agent, because no metric has such a label.
func TestDashboards_TellNoOrganizationsOrAgentsApart(t *testing.T) {
	known := []string{"instance", "le", "alertname", "alertstate", "job", "proxy", "server", "code"} // Prometheus' and HAProxy's
	for _, row := range readMetricsTable(t) {
		for label := range row.labels {
			known = append(known, label)
		}
	}
	labels := regexp.MustCompile(`by \(([^)]*)\)|\{\{(\w+)\}\}|(\w+)(?:=~|!~|!=|=)"`)
	for _, d := range readDashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, m := range labels.FindAllStringSubmatch(target.Expr+target.LegendFormat, -1) {
					for label := range strings.SplitSeq(m[1]+m[2]+m[3], ", ") {
						if !slices.Contains(known, label) || strings.Contains(label, "org") || strings.Contains(label, "agent") {
							t.Errorf("%s: panel %q tells %q apart, which is no label of docs/metrics.md", d.file, p.Title, label)
						}
					}
				}
			}
		}
	}
}

// readDatasource returns the uid of the provisioned data source.
func readDatasource(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(grafanaDir + "/provisioning/datasources/prometheus.yml")
	must(t, err)
	var file struct{ Datasources []struct{ Type, UID string } }
	must(t, yaml.Unmarshal(text, &file))
	if len(file.Datasources) != 1 || file.Datasources[0].Type != "prometheus" {
		t.Fatalf("the provisioning has the sources %+v, want one Prometheus", file.Datasources)
	}
	return file.Datasources[0].UID
}

// TestDashboards_AreWhatGrafanasTypesWrite reads each dashboard through the types that Grafana
// publishes for its version in docker-compose.yml. The types must write the same document. So no
// member is misspelt, and none has the default of the types where Grafana has another.
func TestDashboards_AreWhatGrafanasTypesWrite(t *testing.T) {
	python := filepath.Join("..", "..", "bin", "oracles", "bin", "python3")
	if out, err := exec.Command(python, "-c", "import grafana_foundation_sdk").CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("Grafana's types for Python are not installed: %v %s", err, out)
		}
		t.Skip("SKIPPED: Grafana's types for Python are not installed: make oracles installs them")
	}
	for _, d := range readDashboards(t) {
		name := filepath.Join(grafanaDir, "dashboards", d.file)
		text, err := os.ReadFile(name)
		must(t, err)
		written, err := exec.Command(python, "testdata/grafana_types.py", name).Output()
		must(t, err)
		var want, got map[string]any
		must(t, json.Unmarshal(text, &want))
		must(t, json.Unmarshal(written, &got))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Grafana's types write another document (-file +types). "+
				"bin/oracles/bin/python3 internal/system/testdata/grafana_types.py --write FILE makes it theirs:\n%s", d.file, diff)
		}
	}
}
