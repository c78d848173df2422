package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/engine"
)

func TestDecision_Idempotency_RecallGivesTheFirstResultAndMakesNoneFinal(t *testing.T) {
	store := newFake()
	l := open(t, store)
	recall := func(in *engine.Intent) (Outcome, bool, error) {
		t.Helper()
		return l.Recall(t.Context(), "acme", in, "")
	}
	for range 2 {
		if out, decided, err := recall(intent(1)); decided || err != nil || out.Record != nil {
			t.Fatalf("Recall of a new intent = %+v, %v, %v, want false", out, decided, err)
		}
	}
	first, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	if err != nil || first.Replayed {
		t.Fatalf("Commit = replayed %v, %v, want the first decision", first.Replayed, err)
	}
	out, decided, err := recall(intent(1))
	if err != nil || !decided || !out.Replayed {
		t.Fatalf("Recall = replayed %v, %v, %v, want the decision", out.Replayed, decided, err)
	}
	if diff := cmp.Diff(encode(first.Record), encode(out.Record)); diff != "" {
		t.Errorf("Recall gives another record: %s", diff)
	}
	other := intent(1)
	other.Resource += "/other"
	if _, decided, err := recall(other); decided || !errors.Is(err, ErrIntentConflict) {
		t.Errorf("Recall of another body = %v, %v, want ErrIntentConflict", decided, err)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after recalls = %d, want 2: they are not metered", got)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestRecall_EveryFaultIsAnError(t *testing.T) {
	store := newFake()
	l := open(t, store)
	if _, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); err != nil {
		t.Fatal(err)
	}
	store.set(func(f *fake) { f.removed = true })
	if _, decided, err := l.Recall(t.Context(), "acme", intent(1), ""); decided || !errors.Is(err, ErrIntentExpired) {
		t.Errorf("Recall of a removed decision = %v, %v, want ErrIntentExpired", decided, err)
	}
	store.set(func(f *fake) { f.decidedErr = errFault })
	if _, decided, err := l.Recall(t.Context(), "acme", intent(1), ""); decided || !errors.Is(err, errFault) {
		t.Errorf("Recall of a failing store = %v, %v, want its error", decided, err)
	}
}
