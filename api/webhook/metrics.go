package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
)

type metrics struct {
	attempts         *prometheus.CounterVec
	dead             prometheus.Counter
	pending, failing prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		attempts: telemetry.CounterVec("writ_webhook_attempts_total",
			"Attempts to deliver an event to a webhook, by result.", "result"),
		dead: telemetry.Counter("writ_webhook_dead_total", "Deliveries that were given up after a day."),
		pending: telemetry.Gauge("writ_webhook_pending",
			"Deliveries that are not delivered yet. 0 where another replica leads."),
		failing: telemetry.Gauge("writ_webhook_failing",
			"Webhooks whose last attempt failed. 0 where another replica leads."),
	}
	m.attempts.WithLabelValues(delivered) // the series exists before the first attempt, so that rates have a start
	_, err := telemetry.Register(reg, m.attempts, m.dead, m.pending, m.failing)
	return m, err
}

func (m *metrics) show(pending int64, failing int) {
	m.pending.Set(float64(pending))
	m.failing.Set(float64(failing))
}
