package core

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/internal/telemetry"
)

// outcomeError is the label value of a question without a decision. For other questions the
// label value is the [engine.Decision].
const outcomeError = "error"

// metrics are the metrics of a Core. No label names an organization, an agent or a policy.
type metrics struct {
	duration *prometheus.HistogramVec
	byReason map[Reason]prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, b *breaker) (*metrics, error) {
	m := &metrics{
		byReason: make(map[Reason]prometheus.Counter),
		duration: telemetry.HistogramVec("writ_core_request_duration_seconds",
			"Time the external evaluation core took to answer, by decision or error.", []string{"outcome"},
			.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10),
	}
	failures := telemetry.CounterVec("writ_core_errors_total",
		"Evaluations that the external evaluation core did not decide and that were refused, by reason.", "reason")
	for _, outcome := range []string{engine.Allow.String(), engine.ApprovalRequired.String(), engine.Deny.String(),
		outcomeError} {
		m.duration.WithLabelValues(outcome)
	}
	for _, reason := range reasons() {
		m.byReason[reason] = failures.WithLabelValues(string(reason))
	}
	_, err := telemetry.Register(reg, m.duration, failures, telemetry.GaugeFunc("writ_core_breaker_state",
		"Breaker of the external evaluation core: 0 closed (asked), 1 half-open (tried out), 2 open (left alone).",
		b.state))
	return m, err
}

// asked counts a question that was sent.
func (m *metrics) asked(took time.Duration, result engine.Result, err error) {
	outcome := result.Decision.String()
	if err != nil {
		outcome = outcomeError
	}
	m.duration.WithLabelValues(outcome).Observe(took.Seconds())
}

// failed counts an evaluation that the core did not decide.
func (m *metrics) failed(err *Error) { m.byReason[err.Reason].Inc() }
