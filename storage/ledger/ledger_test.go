package ledger

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage/receipt"
)

func TestDecision_Idempotency_SameIntentSameResultMeteredOnce(t *testing.T) {
	store, l := openFake(t)
	const callers = 100
	outs := make([]Outcome, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			// Each caller evaluates separately, and the results differ.
			d := engine.Decision(1 + i%3)
			out, err := decide(t.Context(), l, "acme", entry(intent(1), d))
			if err != nil {
				t.Errorf("Commit = %v", err)
			}
			outs[i] = out
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	first := 0
	for _, out := range outs {
		if !out.Replayed {
			first++
		}
		if diff := cmp.Diff(encode(outs[0].Record), encode(out.Record)); diff != "" {
			t.Errorf("two callers got different records: %s", diff)
		}
	}
	if first != 1 {
		t.Errorf("%d of %d outcomes are not replays, want 1", first, callers)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after %d duplicates = %d, want 2: one tick", callers, got)
	}
	if n := store.metered("acme", 202611); n != 1 {
		t.Errorf("%d decisions in the month, want 1", n)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestDecision_Idempotency_DuplicatesWithinOneBatch(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store)
	head := goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow))
	blocked := <-store.commitGate
	var dups []<-chan result
	for range 3 {
		dups = append(dups, goDecide(t.Context(), l, "acme", entry(intent(1), engine.Allow)))
	}
	other := goDecide(t.Context(), l, "other", entry(intent(1), engine.Deny))
	awaitQueued(l, 4)
	close(blocked.open)
	batch := <-store.commitGate
	close(batch.open)
	if r := <-head; r.err != nil {
		t.Errorf("Commit = %v", r.err)
	}
	ids := make(map[string]bool)
	for _, d := range dups {
		r := <-d
		if r.err != nil {
			t.Fatalf("Commit = %v", r.err)
		}
		ids[r.out.Record.DecisionID] = true
	}
	if len(ids) != 1 {
		t.Errorf("duplicates in a batch got the decisions %v, want one", ids)
	}
	if r := <-other; r.err != nil || r.out.Replayed || r.out.Record.Decision != engine.Deny {
		t.Errorf("the same intent id of another organization = %+v, want its own decision", r)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestDecision_Idempotency_DifferentBodyIsConflictThatTellsNothing(t *testing.T) {
	l := open(t, newFake())
	first := mustDecide(t, l, "acme", intent(1))
	for name, change := range map[string]func(*engine.Intent){
		"resource":         func(in *engine.Intent) { in.Resource = "elsewhere" },
		"spelling of time": func(in *engine.Intent) { in.IssuedAt = "2026-11-21T11:59:59.0Z" },
		"cost":             func(in *engine.Intent) { in.Cost = nil },
		"metadata value":   func(in *engine.Intent) { in.Metadata["env"] = "dev" },
		"policy":           func(in *engine.Intent) { in.PolicyID = "3f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20" },
	} {
		t.Run(name, func(t *testing.T) {
			in := intent(1)
			change(in)
			out, err := decide(t.Context(), l, "acme", entry(in, engine.Allow))
			if !errors.Is(err, ErrIntentConflict) || out != (Outcome{}) {
				t.Errorf("Commit = %v, %v, want nothing but ErrIntentConflict", out, err)
			}
			if strings.Contains(err.Error(), first.Record.DecisionID) || strings.Contains(err.Error(), "prod") {
				t.Errorf("the error %q tells of the earlier body", err)
			}
		})
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after conflicts = %d, want 2: they are not metered", got)
	}
}

func TestDecision_Receipts_VerifyAndExpireAfterTTL(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{0: 300 * time.Second, 42 * time.Second: 42 * time.Second} {
		t.Run(ttl.String(), func(t *testing.T) {
			store, l := openFake(t, func(c *Config) { c.TTL = ttl })
			out := mustDecide(t, l, "acme", intent(1))
			r := out.Record.Receipt
			keys := testKeys(t, testSigner(1))
			if want := noon.Add(want).Unix(); r.Exp != want {
				t.Errorf("exp = %d, want %d", r.Exp, want)
			}
			if err := receipt.Verify(r, keys, noon); err != nil {
				t.Errorf("Verify = %v", err)
			}
			if err := receipt.Verify(r, keys, noon.Add(want)); !errors.Is(err, receipt.ErrExpired) {
				t.Errorf("Verify after the TTL = %v, want ErrExpired", err)
			}
			if err := receipt.VerifyPayload(r, Payload(out.Record)); err != nil {
				t.Errorf("VerifyPayload = %v", err)
			}
			if r.Decision != "allow" || r.DecisionID != out.Record.DecisionID || r.KeyID != testSigner(1).KeyID() {
				t.Errorf("receipt = %+v, does not repeat its record", r)
			}
			store.check(t, keys)
		})
	}
}

func TestDecision_Receipts_KeyRotationKeepsOldReceiptsAndTheChain(t *testing.T) {
	store := newFake()
	for seed := range byte(3) {
		l := open(t, store, func(c *Config) { c.Signer = testSigner(seed) })
		mustDecide(t, l, "acme", intent(int(seed)))
		must(t, l.Close(t.Context()))
	}
	if len(store.heads) != 3 {
		t.Errorf("%d heads, want 3", len(store.heads))
	}
	store.check(t, testKeys(t, testSigner(0), testSigner(1), testSigner(2)))
}

func TestDecision_Audit_NoDecisionLeavesBeforeItIsDurable(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store)
	answer := goDecide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	g := <-store.commitGate
	select {
	case r := <-answer:
		t.Fatalf("Commit = %+v before the store had committed", r)
	default:
	}
	close(g.open)
	r := <-answer
	if r.err != nil {
		t.Fatalf("Commit = %v", r.err)
	}
	if len(store.order) != 1 {
		t.Error("Commit returned without a record in the store")
	}
}

// TestDecision_Receipts_HeadsAndSignaturesAreMadePerBatch checks that the waiting commits form a
// batch without delay. A batch of any size must have one head.
func TestDecision_Receipts_HeadsAndSignaturesAreMadePerBatch(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store)
	answers := []<-chan result{goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow))}
	alone := <-store.commitGate // an idle ledger commits at once
	const waiting = maxCommit + 5
	for i := range waiting {
		answers = append(answers, goDecide(t.Context(), l, "acme", entry(intent(1+i), engine.Allow)))
	}
	awaitQueued(l, waiting)
	close(alone.open)
	full := <-store.commitGate
	close(full.open)
	rest := <-store.commitGate
	close(rest.open)
	if diff := cmp.Diff([]int{1, maxCommit, 5}, []int{alone.size, full.size, rest.size}); diff != "" {
		t.Errorf("batches: %s", diff)
	}
	for _, a := range answers {
		if r := <-a; r.err != nil {
			t.Errorf("Commit = %v", r.err)
		}
	}
	store.set(func(f *fake) {
		if len(f.heads) != 3 {
			t.Errorf("%d heads of 3 batches, want one each", len(f.heads))
		}
	})
	store.check(t, testKeys(t, testSigner(1)))
}

func TestBatch_TakesAllThatAreReadyOnABusyCPU(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	store, l := openFake(t)
	const callers, each = 64, 10
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if _, err := decide(t.Context(), l, "acme", entry(intent(c*each+i), engine.Allow)); err != nil {
					t.Errorf("Commit = %v", err)
				}
			}
		})
	}
	wg.Wait()
	// A caller has one commit in progress at a time. So there are at least as many batches as
	// commits of one caller. Waiting commits may be split over several batches, depending on the
	// scheduler.
	if n := len(store.batches); n > 8*each {
		t.Errorf("%d commits of %d callers took %d batches, want about %d", callers*each, callers, n, each)
	}
}

func TestCommit_FullQueueIsOverloaded(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store, func(c *Config) { c.QueueLimit = 4 })
	var answers []<-chan result
	answers = append(answers, goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow)))
	g := <-store.commitGate
	for i := range 2 {
		answers = append(answers, goDecide(t.Context(), l, "acme", entry(intent(1+i), engine.Allow)))
	}
	awaitQueued(l, 2)
	if _, err := decide(t.Context(), l, "acme", entry(intent(3), engine.Allow)); !errors.Is(err, ErrOverloaded) {
		t.Errorf("Commit on a full queue = %v, want ErrOverloaded", err)
	}
	if got := ordinal(t, l, "acme"); got != 4 {
		t.Errorf("ordinal = %d, want 4: the refused commit holds no place", got)
	}
	close(g.open)
	close((<-store.commitGate).open)
	for _, a := range answers {
		if r := <-a; r.err != nil {
			t.Errorf("Commit = %v", r.err)
		}
	}
}

func TestCommit_CancelledWaiterMayStillBeDecided(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated, 2)
	l := open(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	answer := goDecide(ctx, l, "acme", entry(intent(1), engine.Allow))
	g := <-store.commitGate
	cancel()
	if r := <-answer; !errors.Is(r.err, context.Canceled) || r.out != (Outcome{}) {
		t.Errorf("Commit = %+v, want nothing but context.Canceled", r)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal = %d, want 2: the commit is still in flight", got)
	}
	close(g.open)
	again := goDecide(t.Context(), l, "acme", entry(intent(1), engine.Deny))
	close((<-store.commitGate).open)
	r := <-again
	if r.err != nil || !r.out.Replayed || r.out.Record.Decision != engine.Allow {
		t.Errorf("the retry = %+v, want the decision of the cancelled commit", r)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal = %d, want 2: one decision", got)
	}
}

func TestCommit_RefusesWhatIsNoDecision(t *testing.T) {
	store, l := openFake(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx    context.Context
		change func(*Entry)
	}{
		"no decision":         {t.Context(), func(e *Entry) { e.Result.Decision = 0 }},
		"unknown decision":    {t.Context(), func(e *Entry) { e.Result.Decision = engine.Deny + 1 }},
		"no findings":         {t.Context(), func(e *Entry) { e.Result.Findings = nil }},
		"resource unread":     {t.Context(), func(e *Entry) { e.Intent.Resource = "\x00" }},
		"no policy version":   {t.Context(), func(e *Entry) { e.PolicyVersion = 0 }},
		"reason is not UTF-8": {t.Context(), func(e *Entry) { e.Result.Findings[0].Reason = "\xff" }},
		"context has ended":   {cancelled, func(*Entry) {}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
			must(t, err)
			e := entry(intent(1), engine.Allow)
			test.change(&e)
			if out, err := commit(test.ctx, l, reservation, e); err == nil || out != (Outcome{}) {
				t.Errorf("Commit = %+v, %v, want an error", out, err)
			}
			if out, err := commit(t.Context(), l, reservation, entry(intent(1), engine.Allow)); err == nil {
				t.Errorf("Commit on the ended reservation = %+v, want an error", out)
			}
		})
	}
	if got := ordinal(t, l, "acme"); got != 1 || len(store.order) != 0 {
		t.Errorf("ordinal = %d with %d records, want 1 and none", got, len(store.order))
	}
}

func TestClose_DrainsAndRefuses(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store)
	var answers []<-chan result
	answers = append(answers, goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow)))
	g := <-store.commitGate
	for i := range 3 {
		answers = append(answers, goDecide(t.Context(), l, "acme", entry(intent(1+i), engine.Allow)))
	}
	awaitQueued(l, 3)
	reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	closed := make(chan error, 1)
	go func() { closed <- l.Close(t.Context()) }()
	for err := error(nil); !errors.Is(err, ErrClosed); _, err = l.Reserve(t.Context(), nil, "acme", plenty) {
	}
	for err := error(nil); !errors.Is(err, ErrClosed); err = l.Healthy(t.Context()) {
	}
	if _, err := commit(t.Context(), l, reservation, entry(intent(9), engine.Allow)); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit while closing = %v, want ErrClosed", err)
	}
	close(g.open)
	close((<-store.commitGate).open)
	for _, a := range answers {
		if r := <-a; r.err != nil {
			t.Errorf("an accepted commit = %v", r.err)
		}
	}
	if err := <-closed; err != nil {
		t.Errorf("Close = %v", err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close again = %v", err)
	}
	if len(store.order) != 4 {
		t.Errorf("%d records after Close, want 4", len(store.order))
	}
}

func TestClose_GivesUpWhenItsContextEnds(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated, 1)
	l := open(t, store)
	stuck := goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow))
	<-store.commitGate
	queued := goDecide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	awaitQueued(l, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Close = %v, want context.Canceled", err)
	}
	if r := <-stuck; r.err == nil {
		t.Errorf("the commit that the store never finished = %+v, want an error", r.out)
	}
	if r := <-queued; !errors.Is(r.err, ErrClosed) {
		t.Errorf("the commit behind it = %v, want ErrClosed", r.err)
	}
	<-l.stopped
}

var _ Store = (*fake)(nil)
