package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Racers is the number of goroutines in a race.
const Racers = 16

// Race calls f in Racers goroutines at the same time and waits for all of them.
func Race(f func(racer int)) {
	var ready, done sync.WaitGroup
	ready.Add(Racers)
	for i := range Racers {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

// OneWinner runs f as [Race] does and checks that exactly one call returns nil. All other calls
// must return want.
func OneWinner(t testing.TB, what string, want error, f func(racer int) error) {
	t.Helper()
	var wins atomic.Int32
	Race(func(i int) {
		switch err := f(i); {
		case err == nil:
			wins.Add(1)
		case !errors.Is(err, want):
			t.Errorf("%s = %v, want %v", what, err, want)
		}
	})
	if n := wins.Load(); n != 1 {
		t.Errorf("%s succeeded %d times, want once", what, n)
	}
}

var raceTests = []test{
	{"of racing commits of one intent exactly one is first, and metered once", func(w *world) {
		const intents = 24
		var firsts [intents]atomic.Int32
		Race(func(racer int) {
			for n := range intents {
				// The racers commit different but overlapping batches.
				var batch []*storage.Record
				for k := range 3 {
					batch = append(batch, w.record("org", func(r *storage.Record) {
						r.IntentID = IntentID(1e9 + (n+k*racer)%intents)
					}))
				}
				for i, r := range w.commit(batch...) {
					if r == nil {
						var of int
						if _, err := fmt.Sscanf(batch[i].IntentID, intentIDs, &of); err != nil {
							w.Error(err)
						}
						firsts[of-1e9].Add(1)
					}
				}
			}
		})
		for i := range firsts {
			if n := firsts[i].Load(); n != 1 {
				w.Errorf("intent %d was first %d times, want once", i, n)
			}
		}
		w.wantMeter("org", storage.MonthOf(noon), intents)
		w.check()
	}},
	{"of racing different settlements exactly one succeeds", func(w *world) {
		r := w.record("org")
		w.commit(r)
		second := errors.New("another settlement stands")
		OneWinner(w, "Append of a settlement", second, func(i int) error {
			mine := *r
			earlier, err := w.writer.Settle(w.ctx, w.Store, &mine, storage.Settlement{
				Outcome: "executed", ExternalRef: fmt.Sprint("tx-", i), RecordedAt: noon,
			})
			if earlier != nil {
				return second
			}
			return err
		})
		got, err := w.Record(w.ctx, "org", r.DecisionID)
		w.Must("Record", err)
		r.Settlement = got.Settlement
		w.check()
	}},
	{"reads beside commits see whole records only", func(w *world) {
		Race(func(i int) {
			for range 10 {
				if i%4 == 0 {
					w.commit(w.record("org"), w.record("org"))
				}
				for _, r := range w.history("org", storage.Filter{Decision: engine.Deny}, 50) {
					if r.Receipt.Sig == "" || r.Decision != engine.Deny {
						w.Errorf("ListRecords = %+v, want a sealed deny", r)
					}
				}
			}
		})
		w.check()
	}},
}
