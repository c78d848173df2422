package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ/engine"
	"writ/storage"
)

func TestDecision_Plans_MetersEqualDistinctIntents(t *testing.T) {
	store := newFake()
	l := open(t, store)
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
	store := newFake()
	l := open(t, store)
	for i := range before {
		mustDecide(t, l, "acme", intent(i))
	}
	var within atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				turn, err := l.Begin(t.Context(), "acme", limit)
				if err != nil {
					t.Errorf("Begin = %v", err)
					return
				}
				d := engine.Allow
				if turn.Exceeded() {
					d = engine.Deny
				} else {
					within.Add(1)
				}
				if _, err := l.Commit(t.Context(), &turn, entry(intent(before+c*each+i), d)); err != nil {
					t.Errorf("Commit = %v", err)
				}
			}
		})
	}
	wg.Wait()
	if got := within.Load(); got != limit-before {
		t.Errorf("%d turns were within the limit, want %d", got, limit-before)
	}
}

func TestDecision_Plans_MonthTurnsInUTC(t *testing.T) {
	store := newFake()
	// An hour east of UTC it is December already.
	now := &clock{now: time.Date(2026, 12, 1, 0, 59, 59, 0, time.FixedZone("", 3600))}
	l := open(t, store, func(c *Config) { c.Now = now.Now })
	for i := range 3 {
		mustDecide(t, l, "acme", intent(i))
	}
	inFlight, err := l.Begin(t.Context(), "acme", plenty)
	if err != nil {
		t.Fatal(err)
	}
	now.set(now.Now().Add(time.Second))
	if got := ordinal(t, l, "acme"); got != 1 {
		t.Errorf("ordinal in the new month = %d, want 1", got)
	}
	// A turn keeps the month it began in, as does its record.
	out, err := l.Commit(t.Context(), &inFlight, entry(intent(4), engine.Allow))
	if err != nil {
		t.Fatal(err)
	}
	if got := storage.MonthOf(out.Record.DecidedAt); got != 202611 {
		t.Errorf("the turn begun in November is of %d, want 202611", got)
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
	begin := func(limit int64, exceeded bool) *Turn {
		t.Helper()
		turn, err := l.Begin(t.Context(), "acme", limit)
		if err != nil {
			t.Fatal(err)
		}
		if turn.Exceeded() != exceeded {
			t.Errorf("Exceeded of a limit of %d = %v, want %v", limit, !exceeded, exceeded)
		}
		return &turn
	}
	a, b := begin(2, false), begin(2, false)
	begin(2, true).End()
	a.End()
	a.End()
	c := begin(2, false)
	begin(2, true).End()
	c.End()
	if _, err := l.Commit(t.Context(), b, entry(intent(1), engine.Allow)); err != nil {
		t.Fatal(err)
	}
	b.End()
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after End of a committed turn = %d, want 2", got)
	}
}

// TestDecision_Plans_AChangedLimitCountsAtOnce: no place that was taken under
// another limit is given out under this one.
func TestDecision_Plans_AChangedLimitCountsAtOnce(t *testing.T) {
	l := open(t, newFake())
	for i := range 5 {
		mustDecide(t, l, "acme", intent(i))
	}
	held, err := l.Begin(t.Context(), "acme", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		limit    int64
		exceeded bool
	}{{6, true}, {7, false}, {100, false}, {6, true}, {0, true}, {7, false}, {-1, true}} {
		turn, err := l.Begin(t.Context(), "acme", test.limit)
		if err != nil || turn.Exceeded() != test.exceeded {
			t.Errorf("Begin with a limit of %d: exceeded = %v, %v, want %v", test.limit, turn.Exceeded(), err, test.exceeded)
		}
		turn.End()
	}
	if turn, err := l.Begin(t.Context(), "acme", 6); err != nil || !turn.Exceeded() {
		t.Errorf("Begin at the limit = %v, %v, want one above it", turn, err)
	}
	held.End() // of a limit of 100: no place within 6
	if turn, err := l.Begin(t.Context(), "acme", 6); err != nil || !turn.Exceeded() {
		t.Errorf("Begin after a place of another limit came back = %v, %v, want one above this", turn, err)
	}
}

func TestQuotas_OneGrantForManyDecisions(t *testing.T) {
	store := newFake()
	l := open(t, store)
	for i := range 100 {
		mustDecide(t, l, "acme", intent(i))
	}
	if store.grants != 1 {
		t.Errorf("places were asked for %d times, want once", store.grants)
	}
	store.grants = 0
	for range 2 * grantBeyond {
		turn, err := l.Begin(t.Context(), "acme", 100)
		if err != nil || !turn.Exceeded() {
			t.Fatalf("Begin at the limit = %v, %v, want one above it", turn, err)
		}
	}
	if store.grants != 4 {
		t.Errorf("places were asked for %d times for %d decisions above the limit, want 4", store.grants, 2*grantBeyond)
	}
}

func TestQuotas_WhatIsIdleOrClosedGoesBack(t *testing.T) {
	store := newFake()
	l := open(t, store)
	key := quotaKey{"acme", storage.MonthOf(noon)}
	mustDecide(t, l, "acme", intent(1))
	turn, err := l.Begin(t.Context(), "acme", plenty)
	if err != nil {
		t.Fatal(err)
	}
	held := func() (n int64) {
		store.set(func(f *fake) { n = f.held[key] })
		return n
	}
	for range 3 {
		l.quotas.sweep(t.Context())
	}
	if got := held(); got != grantSize-1 {
		t.Errorf("%d places are held while one is in use, want %d", got, grantSize-1)
	}
	turn.End()
	l.quotas.sweep(t.Context())
	l.quotas.sweep(t.Context())
	if got := held(); got != 0 || len(l.quotas.recent)+len(l.quotas.rest) != 0 {
		t.Errorf("%d places are held of an idle organization, and %d quotas, want none", got, len(l.quotas.recent)+len(l.quotas.rest))
	}
	mustDecide(t, l, "acme", intent(2))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := held(); got != 0 {
		t.Errorf("%d places are held by a ledger that is closed", got)
	}
}

// TestQuotas_WhatMayHaveGoneBackIsNotUsed: the store has taken places back, and the
// answer was lost. Another handle may have them since.
func TestQuotas_WhatMayHaveGoneBackIsNotUsed(t *testing.T) {
	for name, giveBack := range map[string]func(l *Ledger){
		"idle": func(l *Ledger) {
			l.quotas.sweep(t.Context())
			l.quotas.sweep(t.Context())
		},
		"of another limit": func(l *Ledger) {
			if _, err := l.Begin(t.Context(), "acme", 20); !errors.Is(err, errFault) {
				t.Errorf("Begin = %v, want the fault", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFake()
			l := open(t, store)
			turn, err := l.Begin(t.Context(), "acme", 10)
			if err != nil {
				t.Fatal(err)
			}
			turn.End()
			store.set(func(f *fake) { f.quotaErr = errFault })
			giveBack(l)
			store.set(func(f *fake) { f.quotaErr = nil })
			if n, err := store.Grant(t.Context(), "acme", storage.MonthOf(noon), 10, 10); n != 10 || err != nil {
				t.Fatalf("Grant to another = %d, %v, want all 10", n, err)
			}
			if turn, err := l.Begin(t.Context(), "acme", 10); err != nil || !turn.Exceeded() {
				t.Errorf("Begin = %v, %v, want a place above the limit", turn, err)
			}
		})
	}
}

func TestBegin_RefusesWhenTheMeterIsUnknown(t *testing.T) {
	store := newFake()
	l := open(t, store)
	store.set(func(f *fake) { f.quotaErr = errFault })
	if _, err := l.Begin(t.Context(), "acme", plenty); !errors.Is(err, errFault) {
		t.Errorf("Begin = %v, want the fault", err)
	}
	store.set(func(f *fake) { f.quotaErr = nil })
	if got := ordinal(t, l, "acme"); got != 1 {
		t.Errorf("ordinal after the fault = %d, want 1", got)
	}
}

// slow is a store whose grants the test answers one by one.
type slow struct {
	*fake
	asked chan chan error
}

func (s slow) Grant(ctx context.Context, org string, month storage.Month, limit, want int64) (int64, error) {
	answer := make(chan error)
	s.asked <- answer
	select {
	case err := <-answer:
		if err != nil {
			return 0, err
		}
		return s.fake.Grant(ctx, org, month, limit, want)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// begins calls Begin of l as often and returns where their errors come.
func begins(ctx context.Context, l *Ledger, n int) <-chan error {
	errs := make(chan error, n)
	for range n {
		go func() {
			turn, err := l.Begin(ctx, "acme", plenty)
			turn.End()
			errs <- err
		}()
	}
	return errs
}

func TestQuotas_OneAskingHoweverManyWait(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	const callers = 8
	errs := begins(t.Context(), open(t, store), callers)
	(<-store.asked) <- nil
	for range callers {
		if err := <-errs; err != nil {
			t.Errorf("Begin = %v", err)
		}
	}
	if len(store.asked) != 0 || store.grants != 1 {
		t.Errorf("places were asked for again")
	}
}

// TestQuotas_WhoAskedMayLeave: the places that the store grants then are another's, or
// go back.
func TestQuotas_WhoAskedMayLeave(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	l := open(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	asker := begins(ctx, l, 1)
	asked := <-store.asked
	cancel()
	if err := <-asker; !errors.Is(err, context.Canceled) {
		t.Errorf("the asker's Begin = %v, want context.Canceled", err)
	}
	waiter := begins(t.Context(), l, 1)
	asked <- nil
	if err := <-waiter; err != nil {
		t.Errorf("the waiter's Begin = %v", err)
	}
	if store.grants != 1 {
		t.Errorf("the store was asked %d times, want once", store.grants)
	}
	l.quotas.sweep(t.Context())
	l.quotas.sweep(t.Context())
	if n, err := store.fake.Grant(t.Context(), "acme", storage.MonthOf(noon), 10, 10); n != 10 || err != nil {
		t.Errorf("Grant to another = %d, %v, want all 10", n, err)
	}
}

func TestQuotas_WaitersShareTheStoresFaultOrLeave(t *testing.T) {
	store := slow{newFake(), make(chan chan error, 1)}
	l := open(t, store)
	asker := begins(t.Context(), l, 1)
	asked := <-store.asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := <-begins(ended, l, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Begin with an ended context = %v, want context.Canceled", err)
	}
	l.quotas.mu.Lock()
	a := l.quotas.recent[quotaKey{"acme", storage.MonthOf(noon)}].asking
	l.quotas.mu.Unlock()
	asked <- errFault
	if err := <-asker; !errors.Is(err, errFault) {
		t.Errorf("the asker's Begin = %v, want the fault", err)
	}
	if err := a.await(t.Context()); !errors.Is(err, errFault) {
		t.Errorf("await = %v, want the fault", err)
	}
}
