package ledger

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/internal/telemetry"
)

// metrics are a ledger's metrics. No label names an organization or an agent.
type metrics struct {
	batchSize      prometheus.Histogram
	commitSeconds  prometheus.Histogram
	queueWait      prometheus.Histogram
	decisions      [engine.Deny + 1]prometheus.Counter // by outcome
	replays        prometheus.Counter
	conflicts      prometheus.Counter
	commitFailures prometheus.Counter

	unregister func()
}

// newMetrics registers a ledger's metrics with reg, if that isn't nil.
func newMetrics(reg prometheus.Registerer, q *queue, qs *quotas) (_ *metrics, err error) {
	decisions := telemetry.CounterVec("writ_decisions_total", "Decisions made final, replays not counted.", "decision")
	m := &metrics{
		batchSize: telemetry.Histogram("writ_ledger_batch_size",
			"Commits in a batch, replays included.", prometheus.ExponentialBuckets(1, 2, 11)...),
		commitSeconds: telemetry.Histogram("writ_ledger_commit_seconds",
			"Time to sign a batch and make it durable.", prometheus.ExponentialBuckets(50e-6, 2, 16)...),
		queueWait: telemetry.Histogram("writ_ledger_queue_wait_seconds",
			"Time the first commit of a batch waited for the batches before it.",
			prometheus.ExponentialBuckets(10e-6, 2, 18)...),
		replays: telemetry.Counter("writ_decision_replays_total", "Commits answered with the decision made before."),
		conflicts: telemetry.Counter("writ_ledger_conflicts_total",
			"Commits refused because the intent id was decided for another intent or is kept no longer."),
		commitFailures: telemetry.Counter("writ_ledger_commit_failures_total",
			"Batches that were not known to become durable."),
	}
	for d := engine.Allow; d <= engine.Deny; d++ {
		m.decisions[d] = decisions.WithLabelValues(d.String())
	}
	m.unregister, err = telemetry.Register(reg, decisions, m.batchSize, m.commitSeconds, m.queueWait, m.replays,
		m.conflicts, m.commitFailures,
		telemetry.GaugeFunc("writ_ledger_queue_depth", "Commits that wait for the next batch.", func() float64 {
			return float64(q.len())
		}),
		counted("writ_quota_grants_total", "Times the store was asked for places in an organization's meter.",
			&qs.Asked),
		counted("writ_quota_errors_total",
			"Times the store could not say or take places in a meter: the intents that wait for them are refused.",
			&qs.Failed))
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// counted returns a counter that shows the value of n.
func counted(name, help string, n *atomic.Int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 {
		return float64(n.Load())
	})
}

// answered counts the outcomes of a batch.
func (m *metrics) answered(fresh [engine.Deny + 1]int, replays, conflicts int) {
	for d := engine.Allow; d <= engine.Deny; d++ {
		m.decisions[d].Add(float64(fresh[d]))
	}
	m.replays.Add(float64(replays))
	m.conflicts.Add(float64(conflicts))
}
