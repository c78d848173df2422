package api

import (
	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
)

// cacheCollector shows the statistics of the caches as they are when asked.
type cacheCollector struct {
	caches                                                          map[string]func() engine.CacheStats
	gets, loads, loadErrors, loadSeconds, evictions, bytes, entries *prometheus.Desc
}

func newCacheCollector(sets *engine.Sets, a *auth, p *plans) *cacheCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"cache"}, labels...), nil)
	}
	return &cacheCollector{
		caches: map[string]func() engine.CacheStats{
			"policies":  func() engine.CacheStats { return sets.Stats().Policies },
			"rules":     func() engine.CacheStats { return sets.Stats().Rules },
			"sessions":  func() engine.CacheStats { return sets.Stats().Sessions },
			"agents":    func() engine.CacheStats { return sets.Stats().Agents },
			"queries":   func() engine.CacheStats { return sets.Stats().Queries },
			"api_keys":  a.keys.Stats,
			"operators": a.jwts.Stats,
			"plans":     p.cache.Stats,
		},
		gets:        desc("writ_cache_gets_total", "Look-ups of a cache, by whether the value was there.", "result"),
		loads:       desc("writ_cache_loads_total", "Values loaded or compiled."),
		loadErrors:  desc("writ_cache_load_errors_total", "Loads that failed."),
		loadSeconds: desc("writ_cache_load_seconds_total", "Time all loads took together."),
		evictions:   desc("writ_cache_evictions_total", "Values dropped for want of room."),
		bytes:       desc("writ_cache_bytes", "About what the values take."),
		entries:     desc("writ_cache_entries", "Values kept."),
	}
}

// Describe implements prometheus.Collector.
func (c *cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.gets, c.loads, c.loadErrors, c.loadSeconds, c.evictions, c.bytes, c.entries} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *cacheCollector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	for name, stats := range c.caches {
		s := stats()
		counter(c.gets, float64(s.Hits), name, "hit")
		counter(c.gets, float64(s.Misses), name, "miss")
		counter(c.loads, float64(s.Loads), name)
		counter(c.loadErrors, float64(s.LoadErrors), name)
		counter(c.loadSeconds, s.LoadTime.Seconds(), name)
		counter(c.evictions, float64(s.Evictions), name)
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(s.Bytes), name)
		ch <- prometheus.MustNewConstMetric(c.entries, prometheus.GaugeValue, float64(s.Entries), name)
	}
}
