package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// gather returns reg's metrics by name, with the labels' values behind it, a
// histogram by its count.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			h := m.GetHistogram()
			if h != nil && (len(h.GetBucket()) == 0 || h.GetSchema() == 0) {
				t.Errorf("%s is not both classic and native", name)
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(h.GetSampleCount())
		}
	}
	return all
}

func TestMetrics_TellWhatBecameOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		g := New(Config{Deadline: deadline, Refusals: 2, Metrics: reg})
		g.limit.n = 2
		starts := admit(t, g)
		fell := queue(g, 1)
		g.Leave(starts[0])
		<-fell // admitted
		fell = queue(g, 2)
		g.Enter(time.Now(), false)
		g.Pause()
		g.Pause() // four fifths of a deadline is the most
		time.Sleep(deadline)
		<-fell
		<-fell
		fell = queue(g, 1)
		want := map[string]float64{
			"writ_admission_rejected_total queue_full": 1, "writ_admission_rejected_total queue_deadline": 2,
			"writ_admission_in_flight": 2, "writ_admission_waiting": 1, "writ_admission_limit": 2,
			"writ_admission_wait_seconds": 3, "writ_admission_pause_seconds_total": 0.08,
		}
		if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		g.Leave(starts[1])
		<-fell
	})
}
