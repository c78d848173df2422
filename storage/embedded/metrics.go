package embedded

import "github.com/prometheus/client_golang/prometheus"

// collector reads the metrics from the store on each collection. It must not be used
// after the store is closed.
type collector struct {
	store                              *Store
	trouble, free, used, behind, clock *prometheus.Desc
}

func newCollector(s *Store) *collector {
	return &collector{
		store: s,
		trouble: prometheus.NewDesc("writ_store_trouble",
			"1 while the store has this trouble, otherwise 0; each but clock, read and tip refuses writes.",
			[]string{"trouble"}, nil),
		free: prometheus.NewDesc("writ_store_free_bytes",
			"Free space of the store's file system.", nil, nil),
		used: prometheus.NewDesc("writ_store_disk_bytes",
			"What the store's files take.", nil, nil),
		behind: prometheus.NewDesc("writ_store_behind_commits",
			"Commits that were answered and are not durable yet; 0 unless decisions are acknowledged before they "+
				"are durable.", nil, nil),
		clock: prometheus.NewDesc("writ_store_clock_behind_seconds",
			"How far the clock of this process stands before the time of the newest decision.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	h := c.store.health
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	show := func(name trouble, err error) {
		there := 0.0
		if err != nil {
			there = 1
		}
		gauge(c.trouble, there, string(name))
	}
	for _, t := range []trouble{lowSpace, flushing, compacting, reading, tipTrouble, clock} {
		show(t, h.trouble(func(other trouble) bool { return other == t }))
	}
	show("stopped", h.Stopped())
	if u, err := h.fs.GetDiskUsage(h.dir); err == nil {
		gauge(c.free, float64(u.AvailBytes))
	}
	gauge(c.behind, float64(c.store.unsynced()))
	gauge(c.clock, c.store.behind().Seconds())
	used := c.store.tables.Size() + int64(c.store.db.Metrics().DiskSpaceUsage()) //nolint:gosec // no disk has so much
	for _, s := range c.store.log.Segments() {
		used += s.Bytes
	}
	gauge(c.used, float64(used))
}
