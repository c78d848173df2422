// Package metricstest reads the metrics of a registry in tests.
package metricstest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Sample is the value of a metric.
type Sample struct {
	Value   float64 // a counter's or a gauge's
	Count   uint64  // a histogram's observations and
	Sum     float64 // their sum
	Native  bool    // has native buckets
	Buckets int     // classic ones
}

// Read returns the metrics of reg by name and the values of their labels, such as
// "writ_decisions_total allow".
func Read(t testing.TB, reg prometheus.Gatherer) map[string]Sample {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatalf("Gather = %v", err)
	}
	all := make(map[string]Sample)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			h := m.GetHistogram()
			all[name] = Sample{
				Value:   m.GetCounter().GetValue() + m.GetGauge().GetValue(),
				Count:   h.GetSampleCount(),
				Sum:     h.GetSampleSum(),
				Native:  len(h.GetPositiveSpan()) > 0,
				Buckets: len(h.GetBucket()),
			}
		}
	}
	return all
}
