package admission

import "github.com/prometheus/client_golang/prometheus"

// metrics are what a gate tells of itself.
type metrics struct {
	rejected [QueueDeadline + 1]prometheus.Counter
	wait     prometheus.Histogram
	paused   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, g *Gate) *metrics {
	rejected := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "writ_admission_rejected_total", Help: "Decisions refused for overload before anything was done about them.",
	}, []string{"reason"})
	m := &metrics{
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                           "writ_admission_wait_seconds",
			Help:                           "Time that decisions waited to be worked on, of those that had to wait.",
			Buckets:                        []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
			NativeHistogramBucketFactor:    1.1,
			NativeHistogramMaxBucketNumber: 160,
		}),
		paused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_admission_pause_seconds_total", Help: "Time that connections were left unread after a refusal, all together.",
		}),
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
	reg.MustRegister(rejected, m.wait, m.paused,
		gauge("writ_admission_in_flight", "Decisions at work.", func() int { return g.working }),
		gauge("writ_admission_waiting", "Decisions that wait to be worked on.", func() int { return g.room.len }),
		gauge("writ_admission_limit", "Decisions that may be at work at once, as the server has measured it can bear.", func() int { return g.limit.n }))
	return m
}
