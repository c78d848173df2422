package api

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
	"writ/internal/telemetry"
)

// metrics are the server's own, which docs/metrics.md lists. No label ever holds
// what a caller chose: not the organization, the agent or a path that has no
// route.
type metrics struct {
	duration     *prometheus.HistogramVec
	responses    [6]prometheus.Counter // by the first digit of the status
	problems     *prometheus.CounterVec
	authFailures *prometheus.CounterVec
	compile      *prometheus.HistogramVec
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
		compile: telemetry.HistogramVec("writ_compile_duration_seconds",
			"Time to compile a policy version or an organization's rules for evaluation.", []string{"kind"},
			1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, .1, .5, 2.5),
		panics: telemetry.Counter("writ_http_panics_total", "Requests whose handler panicked."),
		turnedAway: telemetry.Counter("writ_http_connections_refused_total",
			"Connections closed at once because their address had too many."),
		unapproved: telemetry.Counter("writ_unapproved_actions_total",
			"Actions recorded as executed though the decision had not allowed them."),
	}
	reg.MustRegister(m.duration, m.problems, m.authFailures, m.compile, m.panics, m.turnedAway, m.unapproved)
	responses := telemetry.CounterVec("writ_http_responses_total", "Requests answered, by the class of the status.",
		"status")
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

// gauges are asked at each scrape.
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
			func() float64 { return s.cfg.Store.FreshFor().Seconds() }),
		telemetry.GaugeFunc("writ_leads",
			"1 while this replica does the work that all replicas share: retention, and signing of changes. "+
				"Otherwise 0.",
			func() float64 { return number(s.cfg.Store.Leads()) }),
	}
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

// cacheCollector shows the statistics of the caches as they are when asked.
type cacheCollector struct {
	caches                                                          map[string]func() engine.CacheStats
	gets, loads, loadErrors, loadSeconds, evictions, bytes, entries *prometheus.Desc
}

func newCacheCollector(sets *engine.Sets, a *auth, p *plans) *cacheCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"cache"}, labels...), nil)
	}
	return &cacheCollector{
		caches: map[string]func() engine.CacheStats{
			"policies":  func() engine.CacheStats { return sets.Stats().Policies },
			"rules":     func() engine.CacheStats { return sets.Stats().Rules },
			"sessions":  func() engine.CacheStats { return sets.Stats().Sessions },
			"agents":    func() engine.CacheStats { return sets.Stats().Agents },
			"queries":   func() engine.CacheStats { return sets.Stats().Queries },
			"api_keys":  a.keys.Stats,
			"operators": a.jwts.Stats,
			"plans":     p.cache.Stats,
		},
		gets:        desc("writ_cache_gets_total", "Look-ups of a cache, by whether the value was there.", "result"),
		loads:       desc("writ_cache_loads_total", "Values loaded or compiled."),
		loadErrors:  desc("writ_cache_load_errors_total", "Loads that failed."),
		loadSeconds: desc("writ_cache_load_seconds_total", "Time all loads took together."),
		evictions:   desc("writ_cache_evictions_total", "Values dropped for want of room."),
		bytes:       desc("writ_cache_bytes", "About what the values take."),
		entries:     desc("writ_cache_entries", "Values kept."),
	}
}

// Describe implements prometheus.Collector.
func (c *cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.gets, c.loads, c.loadErrors, c.loadSeconds, c.evictions, c.bytes,
		c.entries} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *cacheCollector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for name, stats := range c.caches {
		s := stats()
		counter(c.gets, float64(s.Hits), name, "hit")
		counter(c.gets, float64(s.Misses), name, "miss")
		counter(c.loads, float64(s.Loads), name)
		counter(c.loadErrors, float64(s.LoadErrors), name)
		counter(c.loadSeconds, s.LoadTime.Seconds(), name)
		counter(c.evictions, float64(s.Evictions), name)
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(s.Bytes), name)
		ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(s.Entries), name)
	}
}
