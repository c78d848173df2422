package admission

import "github.com/prometheus/client_golang/prometheus"

// metrics are what a gate tells of itself.
type metrics struct {
	rejected [QueueDeadline + 1]prometheus.Counter
	held     [Managing + 1]prometheus.Counter
	wait     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, g *Gate) *metrics {
	rejected := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "writ_admission_rejected_total",
		Help: "Requests refused for overload, after their credential was accepted and before anything else.",
	}, []string{"reason"})
	held := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "writ_admission_slot_seconds_total",
		Help: "Time that slots were held, by kind of work: decide, or manage for documents and history.",
	}, []string{"work"})
	m := &metrics{
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                           "writ_admission_wait_seconds",
			Help:                           "Time that requests waited for a slot, of those that had to wait.",
			Buckets:                        []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 160,
		}),
		held: [...]prometheus.Counter{Deciding: held.WithLabelValues("decide"),
			Managing: held.WithLabelValues("manage")},
	}
	for v, reason := range map[Verdict]string{QueueFull: "queue_full", QueueDeadline: "queue_deadline"} {
		m.rejected[v] = rejected.WithLabelValues(reason)
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			g.mu.Lock()
			defer g.mu.Unlock()
			return float64(value())
		})
	}
	reg.MustRegister(rejected, held, m.wait,
		gauge("writ_admission_in_flight", "Requests that hold a slot; there are as many slots as processors.",
			g.working),
		gauge("writ_admission_waiting", "Requests that wait for a slot.", func() int { return g.waiting }))
	return m
}
