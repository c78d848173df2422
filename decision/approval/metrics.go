package approval

import (
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage/ledger"
)

// metrics are the metrics of a desk. No label names an organization or an agent.
type metrics struct{ verdicts *prometheus.CounterVec }

// unused is the label value for approvals that were given and expired before they were used.
const unused = "unused"

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{telemetry.CounterVec("writ_approvals_total",
		"Approvals by what became of them: approved, rejected, revoked, expired with nobody having decided, unused "+
			"in the time that they were approved for.",
		"verdict")}
	for _, v := range []string{ledger.Approved, ledger.Rejected, ledger.Revoked, ledger.Expired, unused} {
		m.verdicts.WithLabelValues(v)
	}
	if reg != nil {
		reg.MustRegister(m.verdicts)
	}
	return m
}

func (m *metrics) judged(verdict string) { m.verdicts.WithLabelValues(verdict).Inc() }

// lapsed counts an approval that has expired, unless it was counted with its verdict already.
func (m *metrics) lapsed(v ledger.Verdicts) {
	switch {
	case v.First == nil:
		m.judged(ledger.Expired)
	case v.First.Verdict == ledger.Approved:
		m.judged(unused)
	}
}
