package system

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestAlerts_WhatCallersFeel has a real Prometheus watch a server whose external core becomes slow and then fails.
// WritSlow must fire for the first and WritUndecided for the second, and neither before. While decisions are slow,
// a slow bucket must have the id of a trace that the collector got.
func TestAlerts_WhatCallersFeel(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits for Prometheus")
	}
	t.Parallel()
	program := needDebian(t, "usr/bin/prometheus", "prometheus")
	var slow, fails atomic.Bool
	core := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			time.Sleep(150 * time.Millisecond)
		}
		if fails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		denyAsCore(w, r)
	}))
	t.Cleanup(core.Close)
	traces := collectTraces(t)
	data, token := newData(t)
	p := start(t, data, manyEvaluations(t), "--evaluation-core-url", core.URL+"/v1/data/writ/core/result", "--evaluation-core-timeout=5s",
		"--traces", traces.url)
	register(t, p.url, token)
	prom := startPrometheus(t, program, map[string][]string{"writ": {hostOf(p.admin)}})
	prom.waitUp(t, 1)
	release := background(t, 4, token, func(s sender) bool {
		_, err := s.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging/web"))
		time.Sleep(20 * time.Millisecond) // keeps the load small
		return err == nil
	})
	defer release()
	waitFor(t, "the share of undecided requests to be recorded as 0", func() bool {
		all, err := prom.query("writ:decisions_undecided:ratio5m")
		must(t, err)
		return len(all) == 1 && all[0].value == 0
	})
	if firing := prom.firing(t); firing["WritUndecided"] {
		t.Errorf("while all requests are decided %v fire", firing)
	}

	slow.Store(true)
	prom.fire(t, map[string]bool{"WritSlow": true})
	if firing := prom.firing(t); firing["WritUndecided"] {
		t.Errorf("while decisions are slow %v fire", firing)
	}
	waitFor(t, "a slow bucket with the id of a trace that the collector got", func() bool {
		return slices.ContainsFunc(prom.exemplars(t, "writ_http_request_duration_seconds_bucket"), func(e exemplar) bool {
			return e.Value > 0.1 && traces.has(e.Labels["trace_id"])
		})
	})

	fails.Store(true)
	prom.fire(t, map[string]bool{"WritUndecided": true})
}

// exemplar is an observation that a bucket links to its trace.
type exemplar struct {
	Labels map[string]string
	Value  float64 `json:",string"`
}

// exemplars returns the exemplars that Prometheus has of a metric.
func (p *promServer) exemplars(t *testing.T, metric string) (all []exemplar) {
	t.Helper()
	form := url.Values{"query": {metric}, "start": {time.Now().Add(-time.Hour).Format(time.RFC3339)}, "end": {time.Now().Add(time.Hour).Format(time.RFC3339)}}
	resp, err := http.Get(p.url + "/api/v1/query_exemplars?" + form.Encode())
	must(t, err)
	defer resp.Body.Close()
	var answer struct {
		Data []struct{ Exemplars []exemplar }
	}
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	for _, series := range answer.Data {
		all = append(all, series.Exemplars...)
	}
	return all
}

// traceCollector keeps the spans that are sent to an OpenTelemetry collector.
type traceCollector struct {
	url  string
	mu   sync.Mutex
	sent strings.Builder
}

func collectTraces(t *testing.T) *traceCollector {
	c := new(traceCollector)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = io.Copy(&c.sent, r.Body) // what is lost, has misses
	}))
	t.Cleanup(server.Close)
	c.url = server.URL + "/v1/traces"
	return c
}

// has reports whether a trace was sent. Its id is in hexadecimal, and the protocol has its bytes.
func (c *traceCollector) has(trace string) bool {
	id, err := hex.DecodeString(trace)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err == nil && len(id) == 16 && strings.Contains(c.sent.String(), string(id))
}
