package api

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
)

// metrics are the metrics of the server. docs/metrics.md lists them. A label never holds a text
// from a caller, such as an organization, an agent or an unknown path.
type metrics struct {
	duration     *prometheus.HistogramVec
	responses    [6]prometheus.Counter // by the first digit of the status
	problems     *prometheus.CounterVec
	authFailures *prometheus.CounterVec
	panics       prometheus.Counter
	turnedAway   prometheus.Counter
	unapproved   prometheus.Counter
	unmatched    *routeMetrics
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		duration: telemetry.HistogramVec("writ_http_request_duration_seconds",
			"Time from a request's first byte being handled to its answer being ready, by route template.",
			[]string{"route", "method", "status"},
			.0001, .00025, .0005, .001, .0025, .005, .01, .025, .1, .5, 2.5, 10),
		problems: telemetry.CounterVec("writ_http_problems_total",
			"Answers that are a problem document, by its code.", "code"),
		authFailures: telemetry.CounterVec("writ_auth_failures_total", "Requests refused for their credential.",
			"reason"),
		panics: telemetry.Counter("writ_http_panics_total", "Requests whose handler panicked."),
		turnedAway: telemetry.Counter("writ_http_connections_refused_total",
			"Connections closed at once because their address had too many."),
		unapproved: telemetry.Counter("writ_unapproved_actions_total",
			"Actions recorded as executed though the decision had not allowed them."),
	}
	reg.MustRegister(m.duration, m.problems, m.authFailures, m.panics, m.turnedAway, m.unapproved)
	responses := telemetry.CounterVec("writ_http_responses_total", "Requests answered, by the class of the status.",
		"status")
	reg.MustRegister(responses)
	for class, name := range classes {
		if name != "" {
			m.responses[class] = responses.WithLabelValues(name)
		}
	}
	// Each counter starts at 0. An alert on a rate would miss the first of these problems if the
	// counter started at 1.
	for _, code := range []string{codeInternal, codeTimeout, codeOverloaded} {
		m.problems.WithLabelValues(code)
	}
	m.unmatched = m.route("unmatched", "any")
	return m
}

// gauges returns the metrics that are computed at each scrape.
func (s *Server) gauges() []prometheus.Collector {
	number := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	return []prometheus.Collector{
		telemetry.GaugeFunc("writ_ready", "1 while /readyz answers 200, otherwise 0.", func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
			defer cancel()
			return number(s.ready(ctx) == nil)
		}),
		telemetry.GaugeFunc("writ_freshness_seconds",
			"Age of the last proof that no change by another replica was missed; 0 where there is none.",
			func() float64 { return s.store.FreshFor().Seconds() }),
		telemetry.GaugeFunc("writ_leads",
			"1 while this replica does the work that all replicas share: retention, and signing of changes. "+
				"Otherwise 0.",
			func() float64 { return number(s.store.Leads()) }),
	}
}

// classes are the metric labels of statuses. The index is the first digit of the status. The 101 of
// a stream of intents, the only 1xx, counts as a 2xx.
var classes = [6]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}

// routeMetrics count the requests of one route. The histogram of a class is created at the route's
// first answer of that class. Creating all histograms at the start would add 2,500 empty series.
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

// observe counts an answer. trace is the id of the trace that a collector gets, or "": the histogram's bucket
// links to it as an exemplar.
func (r *routeMetrics) observe(status int, d time.Duration, trace string) {
	class := status / 100
	switch {
	case status == http.StatusSwitchingProtocols:
		class = 2
	case class < 2 || class > 5:
		class = 5
	}
	r.all.responses[class].Inc()
	o := r.duration(class)
	if linked, ok := o.(prometheus.ExemplarObserver); ok && trace != "" {
		linked.ObserveWithExemplar(d.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	o.Observe(d.Seconds())
}
