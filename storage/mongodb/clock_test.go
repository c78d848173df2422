package mongodb

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/metricstest"
)

// TestHealthy_NotWithAnotherClock checks a handle whose clock differs from the primary's.
func TestHealthy_NotWithAnotherClock(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	reg := prometheus.NewRegistry()
	o.Metrics = reg
	s := openTest(t, o)
	s.silence(t)
	for _, test := range []struct {
		ahead time.Duration
		want  string
	}{
		{0, ""}, {29 * time.Second, ""}, {-29 * time.Second, ""},
		{time.Hour, "1h0m0s ahead of"}, {-time.Hour, "1h0m0s behind"}, {31 * time.Second, "31s ahead of"}, {0, ""},
	} {
		now := time.Now()
		s.compareClocks(&slotRow{Until: now.Add(lease - test.ahead)}, now)
		err := s.Healthy(t.Context())
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("Healthy with a clock that is ahead by %v = %v, want %q", test.ahead, err, test.want)
		}
		if got := metricstest.Read(t, reg)["writ_mongodb_clock_ahead_seconds"].Value; got < test.ahead.Seconds()-1 || got > test.ahead.Seconds()+1 {
			t.Errorf("the metric is %v, want %v", got, test.ahead.Seconds())
		}
	}
	s.compareClocks(&slotRow{Until: time.Now().Add(-time.Hour)}, time.Now().Add(-time.Minute)) // the process was frozen
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy after an answer that took a minute = %v", err)
	}
	must(t, s.renew(t.Context()))
	if ahead := time.Duration(s.slot.ahead.Load()); ahead.Abs() > time.Minute {
		t.Errorf("this clock is ahead of a server on the same machine by %v", ahead)
	}
}
