package ledger

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

func TestDecision_Idempotency_RecallGivesTheFirstResultAndMakesNoneFinal(t *testing.T) {
	store, l := openFake(t)
	recall := func(in *engine.Intent) (Outcome, error) {
		t.Helper()
		return l.Recall(t.Context(), "acme", in, "")
	}
	for range 2 {
		if out, err := recall(intent(1)); err != nil || out.Record != nil {
			t.Fatalf("Recall of a new intent = %+v, %v, want none", out, err)
		}
	}
	first, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	if err != nil || first.Replayed {
		t.Fatalf("Commit = replayed %v, %v, want the first decision", first.Replayed, err)
	}
	out, err := recall(intent(1))
	if err != nil || out.Record == nil || !out.Replayed {
		t.Fatalf("Recall = %+v, %v, want the decision", out, err)
	}
	if diff := cmp.Diff(encode(first.Record), encode(out.Record)); diff != "" {
		t.Errorf("Recall gives another record: %s", diff)
	}
	other := intent(1)
	other.Resource += "/other"
	if out, err := recall(other); out.Record != nil || !errors.Is(err, ErrIntentConflict) {
		t.Errorf("Recall of another body = %v, %v, want ErrIntentConflict", out, err)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal after recalls = %d, want 2: they are not metered", got)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestRecall_EveryFaultIsAnError(t *testing.T) {
	store, l := openFake(t)
	if _, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); err != nil {
		t.Fatal(err)
	}
	store.set(func(f *fake) { f.removed = true })
	if out, err := l.Recall(t.Context(), "acme", intent(1), ""); out.Record != nil || !errors.Is(err, ErrIntentExpired) {
		t.Errorf("Recall of a removed decision = %v, %v, want ErrIntentExpired", out, err)
	}
	store.set(func(f *fake) { f.decidedErr = errFault })
	if out, err := l.Recall(t.Context(), "acme", intent(1), ""); out.Record != nil || !errors.Is(err, errFault) {
		t.Errorf("Recall of a failing store = %v, %v, want its error", out, err)
	}
}
