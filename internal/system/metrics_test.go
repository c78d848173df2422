package system

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/datadir"
)

// These names must not appear in any metric.
const (
	canaryAgent    = "agent-zq7canary"
	canaryOrg      = "org-zq7canary"
	canaryResource = "prod/resource-zq7canary"
)

// allFeatures returns the flags of all features with metrics. A new feature with metrics adds
// its flags here, and its rows to docs/metrics.md.
func allFeatures(t *testing.T) []string {
	return []string{
		decisionLog(t),
		"--service-token", "service-zq7canary", "--verify-engine", "1/1",
		"--portal-url", "https://portal.example", "--stripe-url", "http://127.0.0.1:1", "--stripe-key", "sk_test_1",
		"--stripe-webhook-secret", "whsec_1", "--stripe-price-pro", "price_1", "--stripe-price-business", "price_2",
	}
}

// decisionLog is the flag that sends rows to a file of its own.
func decisionLog(t *testing.T) string {
	return "--decision-log=file:" + filepath.Join(t.TempDir(), "rows.jsonl")
}

// exercise uses every part of writ that has metrics, so that each metric has a value.
func exercise(t *testing.T, p *process, data datadir.Dir) {
	t.Helper()
	operator := newClient(t, p.url, tokenOf(t, data))
	canary := newClient(t, p.url, signed(t, data, canaryOrg))
	register(t, p.url, operator.token)
	operator.do(t, "POST", "/v1/rules", `{"name":"r","condition":"{}","action":"{\"decision\":\"allow\"}"}`, http.StatusCreated, nil)
	var key struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	operator.do(t, "POST", "/v1/tokens", `{"name":"gateway"}`, http.StatusCreated, &key)
	gateway := newSender(t, key.Token, 1)
	for _, in := range []intent{newIntent("bot", "deploy", canaryResource), newIntent(canaryAgent, "drop", "a")} {
		for range 2 { // the second is a replay
			gateway.decide(t, p.url, in)
		}
	}
	canary.do(t, "POST", "/v1/agents", `{"name":"`+canaryAgent+`","externalId":"`+canaryAgent+`"}`, http.StatusCreated, nil)
	canary.do(t, "GET", "/v1/authorizations/export", "", http.StatusForbidden, nil)
	nobody := newClient(t, p.url, "writ_"+uuid.NewString())
	nobody.do(t, "GET", "/v1/rules", "", http.StatusUnauthorized, nil)
	operator.do(t, "PATCH", "/v1/agents/none/status", `{"status":"disabled"}`, http.StatusNotFound, nil)
	operator.do(t, "DELETE", "/v1/tokens/"+key.ID, "", http.StatusNoContent, nil)
	operator.do(t, "POST", "/v1/billing/checkout", `{"plan":"pro"}`, http.StatusBadGateway, nil)
	operator.do(t, "GET", "/nope", "", http.StatusNotFound, nil)
	unchanged(t, p.url+"/")
}

// unchanged requests a page with the ETag of an earlier answer.
func unchanged(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("If-None-Match", "*")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNotModified {
		t.Fatalf("GET %s with If-None-Match: * = %s %v, want 304", url, resp.Status, err)
	}
}

// scrape returns the answer of GET /metrics for the Accept header accept.
func scrape(t *testing.T, p *process, accept string) (body []byte, format expfmt.Format) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.admin+"/metrics", nil)
	must(t, err)
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if body, err = io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics = %s %v", resp.Status, err)
	}
	return body, expfmt.ResponseFormat(resp.Header)
}

const (
	acceptText        = "text/plain;version=0.0.4"
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0"
	acceptProtobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

// families scrapes p as Prometheus does. It returns writ's own metrics by name.
func families(t *testing.T, p *process) map[string]*dto.MetricFamily {
	t.Helper()
	body, format := scrape(t, p, acceptProtobuf)
	if format.FormatType() != expfmt.TypeProtoDelim {
		t.Fatalf("GET /metrics of who accepts protobuf = %s, want protobuf", format)
	}
	all := make(map[string]*dto.MetricFamily)
	dec := expfmt.NewDecoder(bytes.NewReader(body), format)
	for {
		f := new(dto.MetricFamily)
		if err := dec.Decode(f); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.GetName(), "writ_") {
			all[f.GetName()] = f
		}
	}
}

// TestMetrics compares docs/metrics.md with GET /metrics.
func TestMetrics(t *testing.T) {
	data, _ := newData(t)
	p := start(t, data, append(allFeatures(t), "--backup-dir", t.TempDir())...)
	exercise(t, p, data)
	shown, documented := families(t, p), readMetricsTable(t)
	maps.Copy(shown, coreFamilies(t))
	for name := range shown {
		if _, ok := documented[name]; !ok {
			t.Errorf("docs/metrics.md has no row for %s", name)
		}
	}
	for name, row := range documented {
		if strings.HasPrefix(name, mongodbMetrics) {
			continue // TestMetrics_MongoDB
		}
		f, ok := shown[name]
		if !ok {
			t.Errorf("docs/metrics.md has a row for %s, which /metrics does not show", name)
			continue
		}
		row.compare(t, f)
	}
	t.Run("histograms are native and classic", func(t *testing.T) {
		for name, f := range shown {
			if f.GetType() == dto.MetricType_HISTOGRAM && !nativeAndClassic(f) {
				t.Errorf("%s has not both native and classic buckets: %v", name, f.GetMetric()[0])
			}
		}
	})
	for _, accept := range []string{acceptText, acceptOpenMetrics, acceptProtobuf} {
		body, _ := scrape(t, p, accept)
		for _, name := range []string{"zq7canary", examples.Organization + `"`, testPolicy} {
			if bytes.Contains(body, []byte(name)) {
				t.Errorf("the metrics as %s show %q", accept, name)
			}
		}
	}
	t.Run("promlint", func(t *testing.T) { lintMetrics(t, p) })
}

// TestMetrics_IdleServer checks a server without requests. An event that has not happened must have
// no series. A metric that an alert uses must exist before the alert fires.
func TestMetrics_IdleServer(t *testing.T) {
	data, _ := newData(t)
	idle(t, start(t, data, decisionLog(t)), 420, mongodbMetrics)
}

// idle checks a server that has had no requests. The server may show at most most samples. It must
// show all metrics that alerts use, except metrics with the prefix in the parameter absent.
func idle(t *testing.T, p *process, most int, absent string) {
	t.Helper()
	body, _ := scrape(t, p, acceptText)
	samples := make(map[string]bool)
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			samples[line[:strings.LastIndex(line, " ")]] = true
		}
	}
	if len(samples) > most {
		t.Errorf("an idle server shows %d samples, want at most %d", len(samples), most)
	}
	for _, named := range alertSelectors(t, absent) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(samples)), named.matches) {
			t.Errorf("an alert names %s, which an idle server does not show", named)
		}
	}
}

// denyAsCore answers as an external core that denies. It repeats the versions of the request.
func denyAsCore(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Input struct {
			Policy        engine.ActionPolicy `json:"policy"`
			RulesRevision int64               `json:"rules_revision"`
		} `json:"input"`
	}
	if err := json.UnmarshalRead(r.Body, &question); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"result":{"decision":"deny","reasons":["core.finding: no"],"policy_version":%d,"rules_revision":%d}}`,
		question.Input.Policy.Version, question.Input.RulesRevision)
}

// coreFamilies returns the metrics of a deployment with an external core. Some of these metrics
// exist only in such a deployment.
func coreFamilies(t *testing.T) map[string]*dto.MetricFamily {
	core := httptest.NewServer(http.HandlerFunc(denyAsCore))
	t.Cleanup(core.Close)
	data, _ := newData(t)
	p := start(t, data, "--evaluation-core-url", core.URL+"/v1/data/writ/core/result")
	operator := newSender(t, tokenOf(t, data), 1)
	register(t, p.url, operator.token)
	operator.decide(t, p.url, newIntent("bot", "deploy", canaryResource))
	all := families(t, p)
	maps.DeleteFunc(all, func(name string, _ *dto.MetricFamily) bool { return !strings.HasPrefix(name, "writ_core_") })
	return all
}

// lintMetrics checks the names and units of writ's metrics with promtool's rules.
func lintMetrics(t *testing.T, p *process) {
	body, _ := scrape(t, p, acceptText)
	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	must(t, err)
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "writ_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

// nativeAndClassic reports whether f has both native and classic buckets. A histogram without
// observations has a native schema but no native buckets yet.
func nativeAndClassic(f *dto.MetricFamily) bool {
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		if len(h.GetBucket()) == 0 || h.Schema == nil || h.GetSampleCount() > h.GetZeroCount() && len(h.GetPositiveSpan()) == 0 {
			return false
		}
	}
	return true
}
