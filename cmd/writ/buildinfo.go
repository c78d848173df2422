package main

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry that shows the process and what it was built
// from.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	return registry
}

// buildInfo is a constant 1 whose labels say what runs, as far as the go command
// recorded it.
func buildInfo() prometheus.Collector {
	labels := prometheus.Labels{"version": "unknown", "revision": "unknown", "goversion": "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["version"], labels["goversion"] = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				labels["revision"] = s.Value
			}
		}
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "writ_build_info", Help: "Always 1, labelled by what runs.", ConstLabels: labels,
	})
	g.Set(1)
	return g
}
