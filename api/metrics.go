package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
)

// metrics are the server's own. No label ever holds what a caller chose: not
// the organization, the agent or a path that has no route.
type metrics struct {
	duration     *prometheus.HistogramVec
	authFailures *prometheus.CounterVec
	decisions    *prometheus.CounterVec
	findings     *prometheus.CounterVec
	replays      prometheus.Counter
	condErrors   prometheus.Counter
	panics       prometheus.Counter
	byDecision   [engine.Deny + 1]prometheus.Counter
	byCode       map[engine.Code]prometheus.Counter // one for each of engine.Codes
	unmatched    *routeMetrics
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		byCode: make(map[engine.Code]prometheus.Counter),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                           "writ_http_request_duration_seconds",
			Help:                           "Time from a request's first byte being handled to its answer being ready, by route template.",
			Buckets:                        []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5, 10},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 160,
		}, []string{"route", "method", "status"}),
		authFailures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_auth_failures_total", Help: "Requests refused for their credential.",
		}, []string{"reason"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_decisions_total", Help: "Decisions made (replays not counted).",
		}, []string{"decision"}),
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_findings_total", Help: "Findings of decisions, by stable code.",
		}, []string{"code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_decision_replays_total", Help: "Intents that had been decided before.",
		}),
		condErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_rule_condition_errors_total", Help: "Rule conditions that could not be evaluated.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_http_panics_total", Help: "Requests whose handler panicked.",
		}),
	}
	reg.MustRegister(m.duration, m.authFailures, m.decisions, m.findings, m.replays, m.condErrors, m.panics)
	for d := engine.Allow; d <= engine.Deny; d++ {
		m.byDecision[d] = m.decisions.WithLabelValues(d.String())
	}
	for _, code := range engine.Codes() {
		m.byCode[code] = m.findings.WithLabelValues(string(code))
	}
	m.unmatched = m.route("unmatched", "any")
	return m
}

// routeMetrics are the histograms of one route, by status class.
type routeMetrics struct {
	class [6]prometheus.Observer
}

func (m *metrics) route(template, method string) *routeMetrics {
	r := &routeMetrics{}
	for class, name := range []string{"", "1xx", "2xx", "3xx", "4xx", "5xx"} {
		if class >= 2 {
			r.class[class] = m.duration.WithLabelValues(template, method, name)
		}
	}
	return r
}

func (r *routeMetrics) observe(status int, d time.Duration) {
	class := status / 100
	if class < 2 || class > 5 {
		class = 5
	}
	r.class[class].Observe(d.Seconds())
}

// decided counts an evaluation by what came of it.
func (m *metrics) decided(res *engine.Result, replayed bool) {
	if res.ConditionErrors > 0 {
		m.condErrors.Add(float64(res.ConditionErrors))
	}
	if replayed {
		m.replays.Inc()
		return
	}
	m.byDecision[min(max(res.Decision, engine.Allow), engine.Deny)].Inc()
	for i := range res.Findings {
		if c, ok := m.byCode[res.Findings[i].Code]; ok {
			c.Inc()
		}
	}
}
