package api

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
)

// metrics are the server's own, which docs/metrics.md lists. No label ever holds
// what a caller chose: not the organization, the agent or a path that has no
// route.
type metrics struct {
	duration     *prometheus.HistogramVec
	responses    [6]prometheus.Counter // by the first digit of the status
	problems     *prometheus.CounterVec
	authFailures *prometheus.CounterVec
	evaluation   prometheus.Histogram
	evaluations  atomic.Uint64 // to sample evaluation
	compile      *prometheus.HistogramVec
	findings     *prometheus.CounterVec
	condErrors   [engine.Causes]prometheus.Counter
	panics       prometheus.Counter
	unapproved   prometheus.Counter
	ticks        *prometheus.CounterVec
	byCode       map[engine.Code]prometheus.Counter // one for each of engine.Codes
	byPlan       map[string]planTicks
	unmatched    *routeMetrics
}

// planTicks count what the meters of one plan's organizations counted.
type planTicks struct{ within, beyond prometheus.Counter }

// sampleEvery is how many evaluations one is timed of: two readings of the clock
// and an observation cost a third of the evaluation itself.
const sampleEvery = 16

func newMetrics(reg prometheus.Registerer, plans map[string]engine.Plan) *metrics {
	m := &metrics{
		duration: prometheus.NewHistogramVec(histogram("writ_http_request_duration_seconds",
			"Time from a request's first byte being handled to its answer being ready, by route template.",
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5, 10), []string{"route", "method", "status"}),
		problems: counterVec("writ_http_problems_total", "Answers that are a problem document, by its code.", "code"),
		authFailures: counterVec("writ_auth_failures_total",
			"Requests refused for their credential.", "reason"),
		evaluation: prometheus.NewHistogram(histogram("writ_evaluation_duration_seconds",
			"Time to evaluate an intent, without loading, compiling or committing; one evaluation in 16 is timed.",
			1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2, .1)),
		compile: prometheus.NewHistogramVec(histogram("writ_compile_duration_seconds",
			"Time to compile a policy version or an organization's rules for evaluation.",
			1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, .1, .5, 2.5), []string{"kind"}),
		findings: counterVec("writ_findings_total", "Findings of decisions, by stable code.", "code"),
		panics:   counter("writ_http_panics_total", "Requests whose handler panicked."),
		unapproved: counter("writ_unapproved_actions_total",
			"Actions recorded as executed though the decision had not allowed them."),
		ticks: counterVec("writ_meter_ticks_total",
			"Decisions that the organizations' meters counted, by plan and by whether the plan's limit still had room.", "plan", "limit"),
		byCode: make(map[engine.Code]prometheus.Counter),
		byPlan: make(map[string]planTicks),
	}
	reg.MustRegister(m.duration, m.problems, m.authFailures, m.evaluation, m.compile, m.findings, m.panics, m.unapproved, m.ticks)
	for _, code := range engine.Codes() {
		m.byCode[code] = m.findings.WithLabelValues(string(code))
	}
	condErrors := counterVec("writ_rule_condition_errors_total", "Rule conditions that could not be evaluated, by cause.", "cause")
	reg.MustRegister(condErrors)
	for cause := range m.condErrors {
		m.condErrors[cause] = condErrors.WithLabelValues(engine.Cause(cause).String())
	}
	for _, p := range plans {
		m.byPlan[p.Name] = planTicks{m.ticks.WithLabelValues(p.Name, "within"), m.ticks.WithLabelValues(p.Name, "beyond")}
	}
	responses := counterVec("writ_http_responses_total", "Requests answered, by the class of the status.", "status")
	reg.MustRegister(responses)
	for class, name := range classes {
		if name != "" {
			m.responses[class] = responses.WithLabelValues(name)
		}
	}
	// An alert sees the first of these only if it saw a 0 before.
	for _, code := range []string{codeInternal, codeTimeout, codeOverloaded} {
		m.problems.WithLabelValues(code)
	}
	m.unmatched = m.route("unmatched", "any")
	return m
}

// histogram describes a histogram that has native buckets and, for who scrapes
// without them, classic ones.
func histogram(name, help string, buckets ...float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// readiness is whether the server should get requests, asked at each scrape.
func (s *Server) readiness() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_ready", Help: "1 while /readyz answers 200, otherwise 0.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		if s.ready(ctx) != nil {
			return 0
		}
		return 1
	})
}

// classes are the labels of statuses by their first digit. The server sends no 1xx.
var classes = [6]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

// routeMetrics count one route's requests. A histogram exists once its route has
// answered with its class: all of them would be 2,500 series of zeros.
type routeMetrics struct {
	all              *metrics
	template, method string
	class            [6]atomic.Pointer[prometheus.Observer]
}

func (m *metrics) route(template, method string) *routeMetrics {
	return &routeMetrics{all: m, template: template, method: method}
}

// duration returns the histogram of a class.
func (r *routeMetrics) duration(class int) prometheus.Observer {
	if known := r.class[class].Load(); known != nil {
		return *known
	}
	o := r.all.duration.WithLabelValues(r.template, r.method, classes[class])
	r.class[class].Store(&o)
	return o
}

func (r *routeMetrics) observe(status int, d time.Duration) {
	class := status / 100
	if class < 2 || class > 5 {
		class = 5
	}
	r.all.responses[class].Inc()
	r.duration(class).Observe(d.Seconds())
}

// evaluate is engine.Evaluate, timed now and then.
func (m *metrics) evaluate(set engine.Set, in *engine.Input, now func() time.Time) engine.Result {
	if m.evaluations.Add(1)%sampleEvery != 1 {
		return engine.Evaluate(set.Policy, set.Rules, in)
	}
	start := now()
	res := engine.Evaluate(set.Policy, set.Rules, in)
	m.evaluation.Observe(now().Sub(start).Seconds())
	return res
}

// compiled is told of every compilation.
func (m *metrics) compiled(kind engine.CompiledKind, took time.Duration) {
	m.compile.WithLabelValues(string(kind)).Observe(took.Seconds())
}

// decided counts an evaluation by what was found, and the tick of its meter
// unless it was decided before. The ledger counts decisions.
func (m *metrics) decided(res *engine.Result, q *question, replayed bool) {
	for cause, n := range res.ConditionErrors {
		if n > 0 {
			m.condErrors[cause].Add(float64(n))
		}
	}
	if replayed {
		return
	}
	for i := range res.Findings {
		if c, ok := m.byCode[res.Findings[i].Code]; ok {
			c.Inc()
		}
	}
	if ticks, ok := m.byPlan[q.plan]; ok {
		if q.in.Usage.Exceeded {
			ticks.beyond.Inc()
		} else {
			ticks.within.Inc()
		}
	}
}
