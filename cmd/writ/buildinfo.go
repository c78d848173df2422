package main

import (
	"fmt"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry returns a registry with metrics of the process and of its build.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	return registry
}

// built describes this build of writ, as far as the go command recorded it.
type built struct{ version, revision, goVersion string }

// revision is for builds without a checkout, such as the Dockerfile's. They set it with
// -ldflags "-X main.revision=…". A build in a checkout uses the checkout's revision instead.
var revision = "unknown"

func readBuilt() built {
	b := built{"unknown", revision, "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version, b.goVersion = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.revision = s.Value
		}
	}
	return b
}

// String returns the line that `writ version` prints.
func (b built) String() string {
	return fmt.Sprintf("writ %s, revision %s, %s", b.version, b.revision, b.goVersion)
}

// buildInfo returns a metric with the constant value 1. Its labels describe the build.
func buildInfo() prometheus.Collector {
	b := readBuilt()
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "writ_build_info", Help: "Always 1, labelled by what runs.",
		ConstLabels: prometheus.Labels{"version": b.version, "revision": b.revision, "goversion": b.goVersion},
	})
	g.Set(1)
	return g
}

type versionCmd struct{}

func (*versionCmd) Help() string {
	return `A server tells the same in its metric writ_build_info.`
}

func (*versionCmd) Run(s streams) error {
	_, err := fmt.Fprintln(s.out, readBuilt())
	return err
}
