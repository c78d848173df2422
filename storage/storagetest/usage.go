package storagetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ/storage"
)

var usageTests = []test{
	{"Meters calls f for each organization that had an intent decided in month, once, with what Metered returns", func(w *world) {
		december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		in := func(t time.Time, n int64) func(*storage.Record) {
			return func(r *storage.Record) { r.DecidedAt, r.DecisionID = t, decisionID(t, n) }
		}
		november := make(map[string]int64)
		for i, org := range hostile {
			for n := range i%3 + 1 {
				w.commit(w.record(org))
				november[org] = int64(n + 1)
			}
		}
		w.commit(w.record("late", in(december, 1)), w.record("a", in(december, 2)), w.record("a", in(december, 3)))
		w.wantMeters(202611, november)
		w.wantMeters(202612, map[string]int64{"late": 1, "a": 2})
		w.wantMeters(202610, map[string]int64{})
	}},
	{"f's error ends Meters and is returned, and a context that has ended ends it", func(w *world) {
		w.commit(w.record("a"), w.record("b"))
		enough, calls := errors.New("enough"), 0
		err := w.Meters(w.ctx, 202611, func(string, int64) error { calls++; return enough })
		w.wantErr("Meters", err, enough)
		if calls != 1 {
			w.Errorf("Meters called f %d times, want 1", calls)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		err = w.Meters(ctx, 202611, func(string, int64) error { return nil })
		w.wantErr("Meters", err, context.Canceled)
	}},
}

func (w *world) wantMeters(month storage.Month, want map[string]int64) {
	w.Helper()
	got := make(map[string]int64)
	w.must("Meters", w.Meters(w.ctx, month, func(org string, n int64) error {
		if _, twice := got[org]; twice {
			return fmt.Errorf("organization %q twice", org)
		}
		got[org] = n
		w.wantMeter(org, month, n)
		return nil
	}))
	w.wantSame(fmt.Sprintf("Meters(%d)", month), got, want)
}
