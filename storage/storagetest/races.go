package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"writ/engine"
	"writ/storage"
)

const racers = 16

func race(f func(racer int)) {
	var ready, done sync.WaitGroup
	ready.Add(racers)
	for i := range racers {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}

// wantOneWinner counts nil as a win and want as a loss.
func (w *world) wantOneWinner(what string, want error, f func(racer int) error) {
	w.Helper()
	var wins atomic.Int32
	race(func(i int) {
		err := f(i)
		if err == nil {
			wins.Add(1)
			return
		}
		w.wantErr(what, err, want)
	})
	if n := wins.Load(); n != 1 {
		w.Errorf("%s succeeded %d times, want once", what, n)
	}
}

var raceTests = []test{
	{"of racing commits of one intent exactly one is first, and metered once", func(w *world) {
		const intents = 24
		var firsts [intents]atomic.Int32
		race(func(racer int) {
			for n := range intents {
				// Batches overlap differently in every racer.
				var batch []*storage.Record
				for k := range 3 {
					batch = append(batch, w.record("org", func(r *storage.Record) {
						r.IntentID = fmt.Sprint("shared-", (n+k*racer)%intents)
					}))
				}
				for i, r := range w.commit(batch...) {
					if r == nil {
						var of int
						if _, err := fmt.Sscanf(batch[i].IntentID, "shared-%d", &of); err != nil {
							w.Error(err)
						}
						firsts[of].Add(1)
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
		w.wantOneWinner("Append of a settlement", second, func(i int) error {
			mine := *r
			stands, err := w.writer.Settle(w.ctx, w.Store, &mine, storage.Settlement{
				Outcome: "executed", ExternalRef: fmt.Sprint("tx-", i), RecordedAt: noon,
			})
			if stands != nil {
				return second
			}
			return err
		})
		got, err := w.Record(w.ctx, "org", r.DecisionID)
		w.must("Record", err)
		r.Settlement = got.Settlement
		w.check()
	}},
	{"reads beside commits see whole records only", func(w *world) {
		race(func(i int) {
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
