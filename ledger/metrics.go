package ledger

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
)

// metrics are what a ledger tells of itself. No label names an organization or
// an agent.
type metrics struct {
	batchSize      prometheus.Histogram
	commitSeconds  prometheus.Histogram
	queueWait      prometheus.Histogram
	decisions      [engine.Deny + 1]prometheus.Counter // by outcome
	replays        prometheus.Counter
	conflicts      prometheus.Counter
	commitFailures prometheus.Counter

	registry   prometheus.Registerer
	registered []prometheus.Collector
}

// newMetrics registers a ledger's metrics with reg, if that isn't nil.
func newMetrics(reg prometheus.Registerer, q *queue, qs *quotas) (*metrics, error) {
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "writ_decisions_total",
		Help: "Decisions made final, replays not counted.",
	}, []string{"decision"})
	depth := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_ledger_queue_depth",
		Help: "Commits that wait for the next batch.",
	}, func() float64 { return float64(q.len()) })
	m := &metrics{
		registry: reg,
		batchSize: histogram("writ_ledger_batch_size",
			"Commits in a batch, replays included.", prometheus.ExponentialBuckets(1, 2, 11)),
		commitSeconds: histogram("writ_ledger_commit_seconds",
			"Time to sign a batch and make it durable.", prometheus.ExponentialBuckets(50e-6, 2, 16)),
		queueWait: histogram("writ_ledger_queue_wait_seconds",
			"Time the first commit of a batch waited for the batches before it.", prometheus.ExponentialBuckets(10e-6, 2, 18)),
		replays: counter("writ_decision_replays_total",
			"Commits answered with the decision made before."),
		conflicts: counter("writ_ledger_conflicts_total",
			"Commits refused because the intent id was decided for another intent or is kept no longer."),
		commitFailures: counter("writ_ledger_commit_failures_total",
			"Batches that were not known to become durable."),
	}
	grants := counted("writ_quota_grants_total",
		"Times the store was asked for places in an organization's meter.", &qs.grants)
	grantErrors := counted("writ_quota_errors_total",
		"Times the store could not say or take places in a meter: the intents that wait for them are refused.", &qs.failures)
	for d := engine.Allow; d <= engine.Deny; d++ {
		m.decisions[d] = decisions.WithLabelValues(d.String())
	}
	return m, m.register(decisions, depth, m.batchSize, m.commitSeconds, m.queueWait,
		m.replays, m.conflicts, m.commitFailures, grants, grantErrors)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// counted shows a number that is counted elsewhere.
func counted(name, help string, n *atomic.Int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(n.Load()) })
}

func (m *metrics) register(all ...prometheus.Collector) error {
	if m.registry == nil {
		return nil
	}
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			m.unregister()
			return fmt.Errorf("registering metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	return nil
}

func (m *metrics) unregister() {
	for _, c := range m.registered {
		m.registry.Unregister(c)
	}
}

// answered counts what a batch led to.
func (m *metrics) answered(fresh [engine.Deny + 1]int, replays, conflicts int) {
	for d := engine.Allow; d <= engine.Deny; d++ {
		m.decisions[d].Add(float64(fresh[d]))
	}
	m.replays.Add(float64(replays))
	m.conflicts.Add(float64(conflicts))
}
