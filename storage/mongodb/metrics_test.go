package mongodb

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
	"writ.example/writ/storage"
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

// commandsOf returns how many commands of each kind a handle has sent.
func commandsOf(t *testing.T, reg *prometheus.Registry) map[string]uint64 {
	t.Helper()
	counts := make(map[string]uint64)
	for name, metric := range metricstest.Read(t, reg) {
		if command, ok := strings.CutPrefix(name, "writ_mongodb_command_duration_seconds "); ok {
			counts[command] = metric.Count
		}
	}
	return counts
}

// TestMetered_Commands counts the commands that read a meter. There are no more of them if there are more replicas.
func TestMetered_Commands(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	w := storagetest.NewWriter()
	for range 3 {
		mustCommit(t, w, openTest(t, o), w.Record("org"))
	}
	reg := prometheus.NewRegistry()
	o.Metrics = reg
	s := openTest(t, o)
	s.silence(t)
	before := commandsOf(t, reg)["find succeeded"]
	n, err := s.Metered(t.Context(), "org", storage.MonthOf(w.Record("org").DecidedAt))
	if sent := commandsOf(t, reg)["find succeeded"] - before; n != 3 || err != nil || sent != 4 {
		t.Errorf("Metered = %d, %v after %d reads, want 3 after 4", n, err, sent)
	}
}

// TestAppend_Commands counts the commands of Appends whose places are held. The records are inserted, the head is
// added and the transaction committed. If an intent is decided already, the insert fails, and the intents are
// found. Then the intents of a number of batches are found first.
func TestAppend_Commands(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	reg := prometheus.NewRegistry()
	o.Metrics = reg
	s, w := openTest(t, o), storagetest.NewWriter()
	r := w.Record("org")
	if _, err := storagetest.Grant(t.Context(), s, "org", storage.MonthOf(r.DecidedAt), 1000, 50); err != nil {
		t.Fatal(err)
	}
	s.silence(t)
	sent := func() map[string]uint64 { return commandsOf(t, reg) }
	commit := func(what string, want map[string]uint64, records ...*storage.Record) {
		t.Helper()
		before := sent()
		mustCommit(t, w, s, records...)
		got := sent()
		for command, n := range before {
			if got[command] -= n; got[command] == 0 {
				delete(got, command)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("the commands of an Append of %s are %v, want %v", what, got, want)
		}
	}
	few := map[string]uint64{"insert succeeded": 1, "update succeeded": 1, "commitTransaction succeeded": 1}
	found := maps.Clone(few)
	found["find succeeded"] = 1
	commit("a new intent", few, r)
	commit("new intents", few, w.Record("org"), w.Record("org"))
	commit("an intent that is decided", map[string]uint64{
		"insert succeeded": 2, "abortTransaction failed": 1, "find succeeded": 1, "update succeeded": 1,
		"commitTransaction succeeded": 1,
	}, w.Record("org"), w.Again(r))
	for range looksAfter {
		commit("a new intent after a decided one", found, w.Record("org"))
	}
	commit("a new intent", few, w.Record("org"))
	storagetest.Check(t, s, w.Keys(t), "org")
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
