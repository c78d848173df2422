package admission

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGate_HoldsItsBoundsInAStorm sends bursts of requests, some of them early,
// that take from nothing to several deadlines, and holds after each what must
// hold at any time.
func TestGate_HoldsItsBoundsInAStorm(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			g := newTestGate(minLimit)
			s := storm{t: t, g: g, random: rand.New(rand.NewPCG(seed, 0))}
			for range 50 {
				stalled := s.random.IntN(8) == 0
				for range s.random.IntN(4 * minLimit) {
					s.arrive(s.random.IntN(5) == 0, s.duration(stalled))
				}
				time.Sleep(time.Duration(s.random.IntN(20)) * time.Millisecond)
			}
			s.all.Wait()
			if g.working != 0 || g.room.len != 0 {
				t.Errorf("seed %d: at work %d, waiting %d after all left, want none", seed, g.working, g.room.len)
			}
			if _, v := g.Enter(time.Now(), true); v != Admitted {
				t.Errorf("seed %d: Enter after the storm = %d, want Admitted", seed, v)
			}
		})
	}
}

// storm is a source of requests.
type storm struct {
	t      *testing.T
	g      *Gate
	random *rand.Rand
	all    sync.WaitGroup

	mu      sync.Mutex
	arrived int       // the number of the last to arrive
	started int       // the greatest number of those that had to wait and were admitted
	at      time.Time // when that was
}

// duration is short, or several deadlines where work stalls.
func (s *storm) duration(stalled bool) time.Duration {
	if stalled {
		return 3 * deadline
	}
	return time.Duration(s.random.IntN(int(deadline / 5)))
}

func (s *storm) arrive(early bool, work time.Duration) {
	s.arrived++
	number := s.arrived
	s.all.Go(func() {
		came := time.Now()
		start, v := s.g.Enter(came, early)
		s.check(number, start.Sub(came), v, early)
		if v == Admitted {
			time.Sleep(work)
			s.g.Leave(start)
		}
	})
	synctest.Wait()
}

func (s *storm) check(number int, waited time.Duration, v Verdict, early bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.g.mu.Lock()
	working, waiting := s.g.working, s.g.room.len
	s.g.mu.Unlock()
	switch {
	case working > maxLimit || waiting > maxLimit:
		s.t.Errorf("at work %d, waiting %d, want at most %d", working, waiting, maxLimit)
	case waited > deadline:
		s.t.Errorf("request %d waited %v, want at most %v", number, waited, deadline)
	case v == QueueFull && waited != 0, early && waited != 0:
		s.t.Errorf("request %d, early %t, waited %v for verdict %d, want none", number, early, waited, v)
	case v == QueueDeadline && waited != deadline:
		s.t.Errorf("request %d was refused after %v, want %v", number, waited, deadline)
	case v == Admitted && waited > 0:
		at := time.Now()
		if number < s.started && at.After(s.at) {
			s.t.Errorf("request %d started after %d, want in the order of arrival", number, s.started)
		}
		if number > s.started {
			s.started, s.at = number, at
		}
	}
}
