package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// serve has l observe, for d, a server that finishes rate requests a second and
// takes fixed for the fastest: with n at work each takes fixed + n/rate.
func serve(l *limit, at time.Time, rate float64, fixed, d time.Duration) time.Time {
	for end := at.Add(d); at.Before(end); {
		took := fixed + time.Duration(float64(l.n)/rate*float64(time.Second))
		at = at.Add(window / 10) // some of them
		l.reached = true
		l.observe(at, took)
	}
	return at
}

func TestLimit_FollowsWhatTheServerBears(t *testing.T) {
	l := newLimit(20 * time.Millisecond)
	at := time.Unix(0, 0)
	for _, step := range []struct {
		rate     float64
		fixed    time.Duration
		min, max int
	}{
		{20_000, 0, 360, 440},
		{5_000, 0, 90, 110},
		{50_000, 0, 900, 1100},
		{1_000, 0, minLimit, minLimit},
		{1e9, 0, maxLimit, maxLimit},
		{5_000, 40 * time.Millisecond, minLimit, minLimit}, // a slow disk
	} {
		at = serve(&l, at, step.rate, step.fixed, 3*time.Second)
		if l.n < step.min || l.n > step.max {
			t.Errorf("limit at %v/s and %v = %d, want %d to %d", step.rate, step.fixed, l.n, step.min, step.max)
		}
	}
}

// TestLimit_StaysWhereItHoldsNothingBack: what is slow without a queue does not
// get faster by a lower limit.
func TestLimit_StaysWhereItHoldsNothingBack(t *testing.T) {
	for _, took := range []time.Duration{time.Microsecond, time.Second} {
		l := newLimit(20 * time.Millisecond)
		for i := range 100 {
			l.observe(time.Unix(int64(i), 0), took)
		}
		if l.n != startLimit {
			t.Errorf("limit with requests of %v = %d, want %d", took, l.n, startLimit)
		}
	}
}

func TestPauses_SpaceRefusalsOut(t *testing.T) {
	at := time.Unix(100, 0)
	p := pauses{every: 10 * time.Millisecond, most: 35 * time.Millisecond}
	for i, want := range []time.Duration{0, 10, 20, 30, 35, 35} {
		if got := p.next(at); got != want*time.Millisecond {
			t.Errorf("pause %d of one moment = %v, want %v", i, got, want*time.Millisecond)
		}
	}
	at = at.Add(time.Second)
	for range 10 { // rarer than every: no pause
		if got := p.next(at); got != 0 {
			t.Errorf("pause of a rare refusal = %v, want 0", got)
		}
		at = at.Add(11 * time.Millisecond)
	}
}

// Who was refused is told to come again after a second, and must not be early
// then, however long the deadline is.
func TestPause_IsShorterThanTheTimeToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for deadline, want := range map[time.Duration]time.Duration{
			100 * time.Millisecond: 80 * time.Millisecond,
			time.Second:            800 * time.Millisecond,
			time.Minute:            800 * time.Millisecond,
		} {
			g := New(Config{Deadline: deadline, Refusals: 1, Metrics: prometheus.NewRegistry()})
			g.Pause()
			g.Pause()
			if got := g.Pause(); got != want {
				t.Errorf("the third Pause at a deadline of %v = %v, want %v", deadline, got, want)
			}
		}
	})
}
