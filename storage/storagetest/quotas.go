package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
	"writ.example/writ/storage/receipt"
)

var november = storage.MonthOf(noon)

// Grant asks a handle for want places of a meter and returns the number of granted places.
func Grant(ctx context.Context, h lease.Store, org string, month storage.Month, limit, want int64) (int64, error) {
	got, err := h.Count(ctx, storage.Window{Org: org, Month: month}, storage.Ask{Limit: limit, Need: min(want, 1), Want: want})
	return got.N, err
}

// Return gives n unused places of a meter back.
func Return(ctx context.Context, h lease.Store, org string, month storage.Month, n int64) error {
	_, err := h.Count(ctx, storage.Window{Org: org, Month: month}, storage.Ask{Back: []storage.WindowPart{{N: n}}})
	return err
}

// quotas adds methods that request places of a meter to a handle.
type quotas struct {
	*testing.T
	storage.Quotas
}

// grant requests want places of org's meter for November. A failure ends the test.
func (q quotas) grant(org string, limit, want int64) int64 {
	q.Helper()
	n, err := Grant(q.Context(), q, org, november, limit, want)
	if err != nil || n < 0 || n > want {
		q.Errorf("Grant(%q, %d, %d) = %d, %v", org, limit, want, n, err)
	}
	return n
}

// all requests places until the store grants none. It returns the number of granted places.
func (q quotas) all(org string, limit int64) (total int64) {
	q.Helper()
	for {
		n := q.grant(org, limit, 1000)
		if n == 0 {
			return total
		}
		total += n
	}
}

func (q quotas) giveBack(org string, n int64) {
	q.Helper()
	if err := Return(q.Context(), q, org, november, n); err != nil {
		q.Errorf("Return(%q, %d) = %v", org, n, err)
	}
}

func (q quotas) want(what string, got, want int64) {
	q.Helper()
	if got != want {
		q.Errorf("%s: %d places, want %d", what, got, want)
	}
}

func (w *world) quotas() quotas { return quotas{w.T, w.Store} }

var quotaTests = []test{
	{"Count gives places as far as limit, none where it is reached, and those that are returned again", func(w *world) {
		q := w.quotas()
		q.want("up to the limit", q.all("org", 10), 10)
		q.want("at the limit", q.grant("org", 10, 1), 0)
		q.giveBack("org", 3)
		q.want("after 3 came back", q.all("org", 10), 3)
		q.want("of a limit that was raised", q.all("org", 12), 2)
		q.want("of a limit that was lowered", q.all("org", 5), 0)
		q.giveBack("org", 12)
		q.want("after all came back", q.all("org", 5), 5)
		for _, limit := range []int64{0, -1} {
			q.want("of no limit", q.grant("other", limit, 1), 0)
		}
		q.want("above every limit", min(1, q.grant("org", 1<<62, 1)), 1)
	}},
	{"places are of an organization and a month", func(w *world) {
		q := w.quotas()
		q.want("of one", q.all("org", 3), 3)
		q.want("of another", q.all("or", 3), 3)
		n, err := Grant(w.ctx, w, "org", november+1, 1, 1)
		w.Must("Grant", err)
		q.want("in the month after", n, 1)
	}},
	{"a record that is appended uses one place up, one that is not none", func(w *world) {
		q := w.quotas()
		q.want("before", q.all("org", 4), 4)
		first := w.record("org")
		w.commit(first, w.record("org"), w.again(first))
		w.commit(w.again(first))
		q.giveBack("org", 2)
		q.want("with two decided of four", q.all("org", 4), 2)
		q.giveBack("org", 2)
		w.wantMeter("org", november, 2)
	}},
	{"of racing Counts exactly limit places are given", func(w *world) {
		q := w.quotas()
		var total atomic.Int64
		Race(func(racer int) {
			for n := int64(1); n > 0; {
				n = q.grant("org", 100, int64(racer%3+1))
				total.Add(n)
			}
		})
		q.want("in all", total.Load(), 100)
	}},
	{"the places of a failed Append are still held", func(w *world) {
		q := w.quotas()
		q.want("before", q.all("org", 2), 2)
		fault := errors.New("fault")
		_, err := w.append(func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return storage.Batch{}, receipt.SignedHead{}, fault
		}, w.record("org"))
		w.WantErr("Append", err, fault)
		q.want("after", q.all("org", 2), 0)
		q.giveBack("org", 2)
		q.want("after they came back", q.all("org", 2), 2)
	}},
	{"Meters calls f for each organization that had an intent decided in month, once, with what Metered returns", func(w *world) {
		december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
		in := func(t time.Time, n int64) func(*storage.Record) {
			return func(r *storage.Record) { r.DecidedAt, r.DecisionID = t, decisionID(t, n) }
		}
		november := make(map[string]int64)
		for i, org := range Hostile {
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
		w.WantErr("Meters", err, enough)
		if calls != 1 {
			w.Errorf("Meters called f %d times, want 1", calls)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		err = w.Meters(ctx, 202611, func(string, int64) error { return nil })
		w.WantErr("Meters", err, context.Canceled)
	}},
}

func (w *world) wantMeters(month storage.Month, want map[string]int64) {
	w.Helper()
	got := make(map[string]int64)
	w.Must("Meters", w.Meters(w.ctx, month, func(org string, n int64) error {
		if _, twice := got[org]; twice {
			return fmt.Errorf("organization %q twice", org)
		}
		got[org] = n
		w.wantMeter(org, month, n)
		return nil
	}))
	w.WantSame(fmt.Sprintf("Meters(%d)", month), got, want)
}
