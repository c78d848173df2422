package mongodb

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage/storagetest"
)

func TestMetrics_OfTheDriverUntilClose(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	reg := prometheus.NewRegistry()
	o.Metrics = reg
	s, err := Open(t.Context(), o)
	must(t, err)
	w := storagetest.NewWriter()
	mustCommit(t, w, s, w.Record("org"))
	got := metricstest.Read(t, reg)
	for _, name := range []string{
		"writ_mongodb_command_duration_seconds commitTransaction succeeded",
		"writ_mongodb_command_duration_seconds insert succeeded",
		"writ_mongodb_command_duration_seconds other succeeded",
		"writ_mongodb_connection_wait_seconds",
	} {
		if got[name].Count == 0 || !got[name].Native {
			t.Errorf("%s = %+v, want observations", name, got[name])
		}
	}
	if open := got["writ_mongodb_connections idle"].Value + got["writ_mongodb_connections in_use"].Value; open <= 0 {
		t.Errorf("%v connections are open", open)
	}
	must(t, s.Close())
	if got := metricstest.Read(t, reg); len(got) != 0 {
		t.Errorf("metrics after Close = %v, want none", got)
	}
	if len(s.metrics.states) > 0 {
		t.Errorf("connections after Close = %v, want none", s.metrics.states)
	}
}

func TestMetrics_StreamsAndReplicas(t *testing.T) {
	c := newCluster(t)
	dead := c.OpenHandle(t).(*recorded)
	reg := prometheus.NewRegistry()
	c.options.Metrics = reg
	s := c.OpenHandle(t).(*recorded)
	count := func(name string) float64 { return metricstest.Read(t, reg)[name].Value }
	if n := count("writ_mongodb_streams_replaced_total"); n != 0 {
		t.Errorf("%v streams were replaced, want none", n)
	}
	c.Cut(s)
	c.cuts[s]("off")
	if n := count("writ_mongodb_streams_replaced_total"); n == 0 {
		t.Error("a stream that was cut is not counted")
	}
	dead.silence(t)
	const name = "writ_mongodb_replicas_given_up_total"
	await(t, "giving up a silent replica", func() bool { return count(name) > 0 })
	if n := count(name); n != 1 {
		t.Errorf("%v replicas were given up, want 1", n)
	}
}
