package webhook

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	attempts         *prometheus.CounterVec
	dead             prometheus.Counter
	pending, failing prometheus.Gauge
}

func newMetrics() *metrics {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_webhook_attempts_total", Help: "Attempts to deliver an event to a webhook, by result.",
		}, []string{"result"}),
		dead: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_webhook_dead_total", Help: "Deliveries that were given up after a day.",
		}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "writ_webhook_pending", Help: "Deliveries that are not delivered yet. 0 where another replica leads.",
		}),
		failing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "writ_webhook_failing", Help: "Webhooks whose last attempt failed. 0 where another replica leads.",
		}),
	}
	m.attempts.WithLabelValues(delivered) // so that a rate of it is known from the first on
	return m
}

func (m *metrics) register(with prometheus.Registerer) error {
	var errs []error
	for _, c := range []prometheus.Collector{m.attempts, m.dead, m.pending, m.failing} {
		errs = append(errs, with.Register(c))
	}
	return errors.Join(errs...)
}

func (m *metrics) show(pending int64, failing int) {
	m.pending.Set(float64(pending))
	m.failing.Set(float64(failing))
}
