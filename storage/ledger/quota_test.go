package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

func TestDecision_Plans_MetersEqualDistinctIntents(t *testing.T) {
	store, l := openFake(t)
	const intents, copies = 50, 4
	var wg sync.WaitGroup
	for i := range intents * copies {
		wg.Go(func() {
			org := fmt.Sprintf("org-%d", i%2)
			if _, err := decide(t.Context(), l, org, entry(intent(i%intents), engine.Allow)); err != nil {
				t.Errorf("Commit = %v", err)
			}
		})
	}
	wg.Wait()
	for org := range 2 {
		if got := ordinal(t, l, fmt.Sprintf("org-%d", org)); got != intents/2+1 {
			t.Errorf("ordinal of organization %d = %d, want %d", org, got, intents/2+1)
		}
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestDecision_Plans_LimitIsExactUnderConcurrency(t *testing.T) {
	const callers, each, before, limit = 64, 16, 100, 700
	_, l := openFake(t)
	for i := range before {
		mustDecide(t, l, "acme", intent(i))
	}
	var within atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				reservation, err := l.Reserve(t.Context(), nil, "acme", limit)
				if err != nil {
					t.Errorf("Reserve = %v", err)
					return
				}
				d := engine.Allow
				if reservation.Exceeded() {
					d = engine.Deny
				} else {
					within.Add(1)
				}
				if _, err := commit(t.Context(), l, reservation, entry(intent(before+c*each+i), d)); err != nil {
					t.Errorf("Commit = %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := within.Load(); got != limit-before {
		t.Errorf("%d reserved were within the limit, want %d", got, limit-before)
	}
}

func TestDecision_Plans_MonthTurnsInUTC(t *testing.T) {
	store := newFake()
	// In this time zone, one hour east of UTC, it is already December. In UTC it is November.
	now := &clock{now: time.Date(2026, 12, 1, 0, 59, 59, 0, time.FixedZone("", 3600))}
	l := open(t, store, func(c *Config) { c.Now = now.Now })
	for i := range 3 {
		mustDecide(t, l, "acme", intent(i))
	}
	inFlight, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	now.set(now.Now().Add(time.Second))
	if got := ordinal(t, l, "acme"); got != 1 {
		t.Errorf("ordinal in the new month = %d, want 1", got)
	}
	// A record counts in the month of its reservation.
	out, err := commit(t.Context(), l, inFlight, entry(intent(4), engine.Allow))
	must(t, err)
	if got := storage.MonthOf(out.Record.DecidedAt); got != 202611 {
		t.Errorf("the reservation begun in November is of %d, want 202611", got)
	}
	mustDecide(t, l, "acme", intent(5))
	for month, want := range map[storage.Month]int64{202611: 4, 202612: 1} {
		if got := store.metered("acme", month); got != want {
			t.Errorf("%d decisions in %d, want %d", got, month, want)
		}
	}
}

func TestTurn_EndGivesThePlaceBackOnce(t *testing.T) {
	l := open(t, newFake())
	begin := func(limit int64, exceeded bool) *Reservation {
		t.Helper()
		reservation, err := l.Reserve(t.Context(), nil, "acme", limit)
		must(t, err)
		if reservation.Exceeded() != exceeded {
			t.Errorf("Exceeded of a limit of %d = %v, want %v", limit, !exceeded, exceeded)
		}
		return reservation
	}
	a, b := begin(2, false), begin(2, false)
	begin(2, true).Release()
	a.Release()
	a.Release()
	c := begin(2, false)
	begin(2, true).Release()
	c.Release()
	if _, err := commit(t.Context(), l, b, entry(intent(1), engine.Allow)); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after End of a committed reservation = %d, want 2", got)
	}
}

// TestDecision_Plans_AChangedLimitCountsAtOnce checks a place that was granted under one limit. The
// ledger must not use this place again under a lower limit.
func TestDecision_Plans_AChangedLimitCountsAtOnce(t *testing.T) {
	l := open(t, newFake())
	for i := range 5 {
		mustDecide(t, l, "acme", intent(i))
	}
	held, err := l.Reserve(t.Context(), nil, "acme", 100)
	must(t, err)
	for _, test := range []struct {
		limit    int64
		exceeded bool
	}{{6, true}, {7, false}, {100, false}, {6, true}, {0, true}, {7, false}, {-1, true}} {
		reservation, err := l.Reserve(t.Context(), nil, "acme", test.limit)
		if err != nil || reservation.Exceeded() != test.exceeded {
			t.Errorf("Reserve with a limit of %d: exceeded = %v, %v, want %v", test.limit, reservation.Exceeded(), err, test.exceeded)
		}
		reservation.Release()
	}
	if reservation, err := l.Reserve(t.Context(), nil, "acme", 6); err != nil || !reservation.Exceeded() {
		t.Errorf("Reserve at the limit = %v, %v, want one above it", reservation, err)
	}
	held.Release() // granted under a limit of 100, so not usable under a limit of 6
	if reservation, err := l.Reserve(t.Context(), nil, "acme", 6); err != nil || !reservation.Exceeded() {
		t.Errorf("Reserve after a place of another limit came back = %v, %v, want one above this", reservation, err)
	}
}

func TestQuotas_OneGrantForManyDecisions(t *testing.T) {
	store, l := openFake(t)
	for i := range 100 {
		mustDecide(t, l, "acme", intent(i))
	}
	if store.grants != 1 {
		t.Errorf("places were asked for %d times, want once", store.grants)
	}
	store.grants = 0
	for range 128 {
		reservation, err := l.Reserve(t.Context(), nil, "acme", 100)
		if err != nil || !reservation.Exceeded() {
			t.Fatalf("Reserve at the limit = %v, %v, want one above it", reservation, err)
		}
	}
	if store.grants != 0 {
		t.Errorf("places were asked for %d times for decisions above the limit while others are here, want never", store.grants)
	}
	if _, err := l.Reserve(t.Context(), nil, "other", 0); err != nil || store.grants != 2 {
		t.Errorf("Reserve of no limit = %v after %d times, want 2: of none and of one above it", err, store.grants)
	}
}

func TestQuotas_WhatIsIdleOrClosedGoesBack(t *testing.T) {
	store, l := openFake(t)
	key := quotaKey{"acme", storage.MonthOf(noon)}
	mustDecide(t, l, "acme", intent(1))
	reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	held := func() (n int64) {
		store.set(func(f *fake) { n = f.held[key] })
		return n
	}
	sweep := func() (quotas int) {
		l.quotas.Return(t.Context(), false)
		l.quotas.Lock()
		defer l.quotas.Unlock()
		l.quotas.forget()
		return len(l.quotas.byKey)
	}
	if n, got := sweep(), held(); n != 1 || got != grantSize-1 {
		t.Errorf("%d places of %d quotas are held that were used since the last time, want %d of 1", got, n, grantSize-1)
	}
	if n, got := sweep(), held(); n != 1 || got != 1 {
		t.Errorf("%d places of %d quotas are held while one is in use, want 1 of 1", got, n)
	}
	reservation.Release()
	if n, got := sweep(), held(); n != 0 || got != 0 {
		t.Errorf("%d places are held of an idle organization, and %d quotas, want none", got, n)
	}
	mustDecide(t, l, "acme", intent(2))
	must(t, l.Close(t.Context()))
	if got := held(); got != 0 {
		t.Errorf("%d places are held by a ledger that is closed", got)
	}
}

// TestQuotas_WhatMayHaveGoneBackIsNotUsed checks that the ledger does not use places that it tried
// to give back. The store has taken the places back, but its answer was lost. Another handle may
// have been granted these places.
func TestQuotas_WhatMayHaveGoneBackIsNotUsed(t *testing.T) {
	for name, giveBack := range map[string]func(l *Ledger){
		"idle": func(l *Ledger) {
			l.quotas.Return(t.Context(), true)
		},
		"of another limit": func(l *Ledger) {
			if _, err := l.Reserve(t.Context(), nil, "acme", 5); !errors.Is(err, errFault) {
				t.Errorf("Reserve = %v, want the fault", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, l := openFake(t)
			reservation, err := l.Reserve(t.Context(), nil, "acme", 10)
			must(t, err)
			reservation.Release()
			store.set(func(f *fake) { f.quotaErr = errFault })
			giveBack(l)
			store.set(func(f *fake) { f.quotaErr = nil })
			if n := store.grant(t); n != 10 {
				t.Fatalf("Count for another = %d, want all 10", n)
			}
			if reservation, err := l.Reserve(t.Context(), nil, "acme", 10); err != nil || !reservation.Exceeded() {
				t.Errorf("Reserve = %v, %v, want a place above the limit", reservation, err)
			}
		})
	}
}

func TestBegin_RefusesWhenTheMeterIsUnknown(t *testing.T) {
	store, l := openFake(t)
	store.set(func(f *fake) { f.quotaErr = errFault })
	if _, err := l.Reserve(t.Context(), nil, "acme", plenty); !errors.Is(err, errFault) {
		t.Errorf("Reserve = %v, want the fault", err)
	}
	store.set(func(f *fake) { f.quotaErr = nil })
	if got := ordinal(t, l, "acme"); got != 1 {
		t.Errorf("ordinal after the fault = %d, want 1", got)
	}
}

// slow is a store that answers a request for places only when the test permits.
type slow struct {
	*fake
	asked chan chan error
}

func (s slow) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if ask.Want == 0 {
		return s.fake.Count(ctx, w, ask)
	}
	answer := make(chan error)
	s.asked <- answer
	select {
	case err := <-answer:
		if err != nil {
			return storage.Granted{}, err
		}
		return s.fake.Count(ctx, w, ask)
	case <-ctx.Done():
		return storage.Granted{}, ctx.Err()
	}
}

// reserves starts n concurrent calls of Reserve. The returned channel gets their errors.
func reserves(ctx context.Context, l *Ledger, n int) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			reservation, err := l.Reserve(ctx, nil, "acme", plenty)
			reservation.Release()
			errs <- err
		}()
	}
	return errs
}

func TestQuotas_OneAskingHoweverManyWait(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	const callers = 8
	errs := reserves(t.Context(), open(t, store), callers)
	(<-store.asked) <- nil
	for range callers {
		if err := <-errs; err != nil {
			t.Errorf("Reserve = %v", err)
		}
	}
	if len(store.asked) != 0 || store.grants != 1 {
		t.Errorf("places were asked for again")
	}
}

// TestQuotas_WhoAskedMayLeave cancels a caller before its request for places is granted. The
// granted places must go to another caller or back to the store.
func TestQuotas_WhoAskedMayLeave(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	l := open(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	asker := reserves(ctx, l, 1)
	asked := <-store.asked
	cancel()
	if err := <-asker; !errors.Is(err, context.Canceled) {
		t.Errorf("the asker's Reserve = %v, want context.Canceled", err)
	}
	waiter := reserves(t.Context(), l, 1)
	asked <- nil
	if err := <-waiter; err != nil {
		t.Errorf("the waiter's Reserve = %v", err)
	}
	if store.grants != 1 {
		t.Errorf("the store was asked %d times, want once", store.grants)
	}
	l.quotas.Return(t.Context(), true)
	if n := store.grant(t); n != 10 {
		t.Errorf("Count for another = %d, want all 10", n)
	}
}

func TestQuotas_WaitersShareTheStoresFaultOrLeave(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	l := open(t, store)
	asker := reserves(t.Context(), l, 1)
	asked := <-store.asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := <-reserves(ended, l, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Reserve with an ended context = %v, want context.Canceled", err)
	}
	waiter := reserves(t.Context(), l, 1)
	for waiting := int64(0); waiting < 2; {
		l.quotas.Lock()
		waiting = l.quotas.byKey[quotaKey{"acme", storage.MonthOf(noon)}].inFlight
		l.quotas.Unlock()
	}
	asked <- errFault
	if err := <-asker; !errors.Is(err, errFault) {
		t.Errorf("the asker's Reserve = %v, want the fault", err)
	}
	if err := <-waiter; !errors.Is(err, errFault) {
		t.Errorf("the waiter's Reserve = %v, want the fault", err)
	}
}
