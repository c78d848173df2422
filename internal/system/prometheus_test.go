package system

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// promServer is a running Prometheus with the deployment's configuration.
type promServer struct{ url string }

// sample is a series that a query returns, with one of its values.
type sample struct {
	Metric map[string]string
	value  float64
}

// startPrometheus starts Prometheus with deploy/prometheus/prometheus.yml and its alerts. Unlike in
// a deployment, Prometheus scrapes and evaluates each second, and an alert fires without a delay.
// targets maps jobs to addresses. Alerts are sent to the targets of the job alertmanager.
func startPrometheus(t *testing.T, program debian, targets map[string][]string) *promServer {
	t.Helper()
	dir := t.TempDir()
	rewriteYAML(t, prometheusDir+"/prometheus.yml", filepath.Join(dir, "prometheus.yml"), func(file map[string]any) {
		file["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
		managers := file["alerting"].(map[string]any)["alertmanagers"].([]any)
		managers[0].(map[string]any)["static_configs"] = []any{map[string]any{"targets": targets["alertmanager"]}}
		for _, job := range file["scrape_configs"].([]any) {
			job := job.(map[string]any)
			job["static_configs"] = []any{map[string]any{"targets": targets[job["job_name"].(string)]}}
		}
	})
	rewriteYAML(t, alertsFile, filepath.Join(dir, "alerts.yml"), func(file map[string]any) {
		for _, group := range file["groups"].([]any) {
			for _, rule := range group.(map[string]any)["rules"].([]any) {
				if rule := rule.(map[string]any); rule["alert"] != nil {
					rule["for"] = "0s"
				}
			}
		}
	})
	addr := freeAddr(t)
	cmd := program.command(context.Background(), "--config.file", filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path", filepath.Join(dir, "tsdb"),
		"--web.listen-address", addr, "--web.console.templates", dir, "--web.console.libraries", dir, "--log.level", "warn",
		"--enable-feature=exemplar-storage")
	startProgram(t, cmd, t.Output())
	p := &promServer{url: "http://" + addr}
	waitFor(t, "Prometheus to be ready", func() bool {
		resp, err := http.Get(p.url + "/-/ready")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return p
}

// rewriteYAML copies a file and applies change to the copy.
func rewriteYAML(t *testing.T, from, to string, change func(map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	var file map[string]any
	must(t, yaml.Unmarshal(text, &file))
	change(file)
	if text, err = yaml.Marshal(file); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(to, text, 0o600))
}

// get sends a query to the API of Prometheus.
func (p *promServer) get(path string, form url.Values) ([]sample, error) {
	resp, err := http.Get(p.url + path + "?" + form.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  []any
				Values [][]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	var all []sample
	for _, r := range answer.Data.Result {
		for _, v := range append(r.Values, r.Value) {
			if len(v) != 2 {
				continue // this is the other kind of query
			}
			f, err := strconv.ParseFloat(v[1].(string), 64)
			if err != nil {
				return nil, err
			}
			all = append(all, sample{r.Metric, f})
		}
	}
	return all, nil
}

// query returns the current values of an expression.
func (p *promServer) query(expr string) ([]sample, error) {
	return p.get("/api/v1/query", url.Values{"query": {expr}})
}

// queryRange returns the values of an expression during the last seconds.
func (p *promServer) queryRange(expr string) ([]sample, error) {
	now := time.Now()
	at := func(t time.Time) []string {
		return []string{strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64)}
	}
	return p.get("/api/v1/query_range", url.Values{"query": {expr}, "start": at(now.Add(-5 * time.Second)), "end": at(now), "step": {"1"}})
}

// firing returns the names of the alerts that fire.
func (p *promServer) firing(t *testing.T) map[string]bool {
	t.Helper()
	all, err := p.query(`ALERTS{alertstate="firing"}`)
	must(t, err)
	names := make(map[string]bool)
	for _, s := range all {
		names[s.Metric["alertname"]] = true
	}
	return names
}

// fire waits for alerts to fire.
func (p *promServer) fire(t *testing.T, want map[string]bool) {
	t.Helper()
	seen := make(map[string]bool)
	for late := time.Now().Add(patience / 2); time.Now().Before(late); time.Sleep(100 * time.Millisecond) {
		maps.Copy(seen, p.firing(t))
		maps.DeleteFunc(want, func(name string, _ bool) bool { return seen[name] })
		if len(want) == 0 {
			return
		}
	}
	t.Errorf("under their faults %v do not fire; these do: %v", slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(seen)))
}

// waitUp waits until each target was scraped twice, because an increase needs two values.
// Prometheus needs about six seconds to find its targets.
func (p *promServer) waitUp(t *testing.T, targets int) {
	t.Helper()
	waitFor(t, "Prometheus to scrape every target twice", func() bool {
		up, err := p.query("count_over_time(up[1m]) >= 2 and up == 1")
		must(t, err)
		time.Sleep(100 * time.Millisecond)
		return len(up) == targets
	})
}
