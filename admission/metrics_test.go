package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"writ/internal/metricstest"
)

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
		got := make(map[string]float64)
		for name, m := range metricstest.Read(t, reg) {
			got[name] = m.Value + float64(m.Count)
			if m.Count > 0 && (m.Buckets == 0 || !m.Native) {
				t.Errorf("%s is not both classic and native", name)
			}
		}
		want := map[string]float64{
			"writ_admission_rejected_total queue_full": 1, "writ_admission_rejected_total queue_deadline": 2,
			"writ_admission_in_flight": 2, "writ_admission_waiting": 1, "writ_admission_limit": 2,
			"writ_admission_wait_seconds": 3, "writ_admission_pause_seconds_total": 0.08,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		g.Leave(starts[1])
		<-fell
	})
}
