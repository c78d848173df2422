// Package telemetry makes and registers the metrics of the other packages. docs/metrics.md lists
// the metrics.
package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Counter returns a counter.
func Counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// CounterVec returns a counter for each combination of label values.
func CounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gauge returns a gauge.
func Gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// GaugeVec returns a gauge for each combination of label values.
func GaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// GaugeFunc returns a gauge that calls value at each scrape.
func GaugeFunc(name, help string, value func() float64) prometheus.GaugeFunc {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// Histogram returns a histogram with native buckets. Scrapers that do not know native buckets get
// buckets.
func Histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return prometheus.NewHistogram(histogram(name, help, buckets))
}

// HistogramVec returns a histogram for each combination of label values: see [Histogram].
func HistogramVec(name, help string, labels []string, buckets ...float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogram(name, help, buckets), labels)
}

func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets, NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
	}
}

// Register registers all metrics with reg. If one metric fails, it registers none and returns an
// error. A nil reg does nothing. undo unregisters the metrics.
func Register(reg prometheus.Registerer, all ...prometheus.Collector) (undo func(), err error) {
	unregister := func(registered []prometheus.Collector) {
		for _, c := range registered {
			reg.Unregister(c)
		}
	}
	if reg == nil {
		all = nil
	}
	for i, c := range all {
		if err := reg.Register(c); err != nil {
			unregister(all[:i])
			return func() {}, err
		}
	}
	return func() { unregister(all) }, nil
}
