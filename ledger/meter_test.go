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
				turn, err := l.Begin(t.Context(), "acme")
				if err != nil {
					t.Errorf("Begin = %v", err)
					return
				}
				d := engine.Allow
				if turn.Ordinal() > limit {
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
	inFlight, err := l.Begin(t.Context(), "acme")
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
	if got := storage.MonthOf(out.Record.DecidedAt); inFlight.Ordinal() != 4 || got != 202611 {
		t.Errorf("the turn begun in November is number %d in %d, want 4 in 202611", inFlight.Ordinal(), got)
	}
	mustDecide(t, l, "acme", intent(5))
	for month, want := range map[storage.Month]int64{202611: 4, 202612: 1} {
		if got, err := store.Metered(t.Context(), "acme", month); got != want || err != nil {
			t.Errorf("Metered(%d) = %d, %v, want %d", month, got, err, want)
		}
	}
}

func TestTurn_EndGivesThePlaceBackOnce(t *testing.T) {
	l := open(t, newFake())
	a, err := l.Begin(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Begin(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if a.Ordinal() != 1 || b.Ordinal() != 2 {
		t.Errorf("ordinals = %d, %d, want 1, 2", a.Ordinal(), b.Ordinal())
	}
	a.End()
	a.End()
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after two Ends of one turn = %d, want 2", got)
	}
	if _, err := l.Commit(t.Context(), &b, entry(intent(1), engine.Allow)); err != nil {
		t.Fatal(err)
	}
	b.End()
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after End of a committed turn = %d, want 2", got)
	}
}

func TestMeters_LoadedOnFirstUse(t *testing.T) {
	store := newFake()
	l := open(t, store)
	mustDecide(t, l, "acme", intent(1))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = open(t, store)
	store.loads = 0
	for range 3 {
		if got := ordinal(t, l, "acme"); got != 2 {
			t.Errorf("ordinal after a restart = %d, want 2", got)
		}
	}
	if store.loads != 1 {
		t.Errorf("the meter was read %d times, want once", store.loads)
	}
}

func TestMeters_BoundedAndKeepThoseInUse(t *testing.T) {
	store := newFake()
	one := meterKey{org: "org-000"}.bytes()
	ms := newMeters(store, 4*one)
	held, _, err := ms.begin(t.Context(), meterKey{org: "org-000"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		m, _, err := ms.begin(t.Context(), meterKey{org: fmt.Sprintf("org-%03d", i)})
		if err != nil {
			t.Fatal(err)
		}
		ms.release(m)
	}
	if ms.bytes > 4*one || len(ms.byKey) != 4 || ms.recent.Len() != 4 {
		t.Errorf("%d meters of %d bytes, want 4 of %d", len(ms.byKey), ms.bytes, 4*one)
	}
	if ms.byKey[held.key] != held {
		t.Error("a meter with a turn in flight was evicted")
	}
}

func TestMeters_AllInUseMayExceedTheBound(t *testing.T) {
	ms := newMeters(newFake(), 1)
	for i := range 10 {
		if _, ordinal, err := ms.begin(t.Context(), meterKey{org: fmt.Sprint(i)}); ordinal != 1 || err != nil {
			t.Errorf("begin = %d, %v, want 1", ordinal, err)
		}
	}
	if len(ms.byKey) != 10 {
		t.Errorf("%d meters, want all 10", len(ms.byKey))
	}
}

func TestBegin_RefusesWhenTheMeterIsUnknown(t *testing.T) {
	store := newFake()
	l := open(t, store)
	store.set(func(f *fake) { f.meterErr = errFault })
	if _, err := l.Begin(t.Context(), "acme"); !errors.Is(err, errFault) {
		t.Errorf("Begin = %v, want the fault", err)
	}
	store.set(func(f *fake) { f.meterErr = nil })
	if got := ordinal(t, l, "acme"); got != 1 {
		t.Errorf("ordinal after the fault = %d, want 1", got)
	}
}

// slow is a store of meters whose reads the test answers one by one.
type slow struct {
	storage.Log
	reads chan chan error
}

func (s slow) Metered(ctx context.Context, _ string, _ storage.Month) (int64, error) {
	answer := make(chan error)
	s.reads <- answer
	select {
	case err := <-answer:
		return 7, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestMeters_OneLoadHoweverManyWait(t *testing.T) {
	store := slow{reads: make(chan chan error, 1)}
	ms := newMeters(store, meterBytes)
	const callers = 8
	begin := func(ctx context.Context) error {
		_, _, err := ms.begin(ctx, meterKey{org: "acme"})
		return err
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if err := begin(t.Context()); err != nil {
				t.Errorf("begin = %v", err)
			}
		})
	}
	(<-store.reads) <- nil
	wg.Wait()
	if m := ms.byKey[meterKey{org: "acme"}]; m.taken != 7+callers || len(store.reads) != 0 {
		t.Errorf("taken = %d with %d more reads, want %d and none", m.taken, len(store.reads), 7+callers)
	}
}

func TestMeters_AnotherCallersContextFailsNobodyElse(t *testing.T) {
	store := slow{reads: make(chan chan error, 1)}
	ms := newMeters(store, meterBytes)
	key := meterKey{org: "acme"}
	ctx, cancel := context.WithCancel(t.Context())
	loader := make(chan error, 1)
	go func() {
		_, _, err := ms.begin(ctx, key)
		loader <- err
	}()
	<-store.reads
	ms.mu.Lock()
	m := ms.byKey[key]
	ms.mu.Unlock()
	cancel()
	if err := <-loader; !errors.Is(err, context.Canceled) {
		t.Errorf("the loader's begin = %v, want context.Canceled", err)
	}
	if err := m.awaitLoad(t.Context()); err != nil {
		t.Errorf("awaitLoad = %v, want nil: try again", err)
	}
	waiter := make(chan error, 1)
	go func() {
		_, _, err := ms.begin(t.Context(), key)
		waiter <- err
	}()
	(<-store.reads) <- errFault
	if err := <-waiter; !errors.Is(err, errFault) {
		t.Errorf("the second loader's begin = %v, want the fault", err)
	}
}

func TestMeters_WaitersShareTheStoresFault(t *testing.T) {
	store := slow{reads: make(chan chan error, 1)}
	ms := newMeters(store, meterBytes)
	key := meterKey{org: "acme"}
	loader := make(chan error, 1)
	go func() {
		_, _, err := ms.begin(t.Context(), key)
		loader <- err
	}()
	read := <-store.reads
	ms.mu.Lock()
	m := ms.byKey[key]
	ms.mu.Unlock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := ms.begin(ended, key); !errors.Is(err, context.Canceled) {
		t.Errorf("begin with an ended context = %v, want context.Canceled", err)
	}
	read <- errFault
	if err := <-loader; !errors.Is(err, errFault) {
		t.Errorf("the loader's begin = %v, want the fault", err)
	}
	if err := m.awaitLoad(t.Context()); !errors.Is(err, errFault) {
		t.Errorf("awaitLoad = %v, want the fault", err)
	}
}
