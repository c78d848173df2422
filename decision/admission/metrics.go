package admission

import (
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
)

// metrics are the metrics of a gate.
type metrics struct {
	rejected [QueueDeadline + 1]prometheus.Counter
	held     [Managing + 1]prometheus.Counter
	wait     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, g *Gate) *metrics {
	rejected := telemetry.CounterVec("writ_admission_rejected_total",
		"Requests refused for overload, after their credential was accepted and before anything else.", "reason")
	held := telemetry.CounterVec("writ_admission_slot_seconds_total",
		"Time that slots were held, by kind of work: decide, or manage for documents and history.", "work")
	m := &metrics{
		wait: telemetry.Histogram("writ_admission_wait_seconds",
			"Time that requests waited for a slot, of those that had to wait.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1),
		held: [...]prometheus.Counter{Deciding: held.WithLabelValues("decide"),
			Managing: held.WithLabelValues("manage")},
	}
	for v, reason := range map[Verdict]string{QueueFull: "queue_full", QueueDeadline: "queue_deadline"} {
		m.rejected[v] = rejected.WithLabelValues(reason)
	}
	gauge := func(name, help string, value func() int) prometheus.Collector {
		return telemetry.GaugeFunc(name, help, func() float64 {
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
