package ledger

import (
	"slices"
	"sync"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/receipt"
)

// TestEmbedded checks the ledger on the embedded store. The scheduler determines the batches. The
// test includes duplicates, conflicts and restarts.
func TestEmbedded(t *testing.T) {
	dir := t.TempDir()
	keys := testKeys(t, testSigner(1))
	const rounds, intents, copies = 3, 40, 4
	var tip receipt.Chain
	for round := range rounds {
		store, err := embedded.Open(dir, embedded.Options{})
		must(t, err)
		l := open(t, store)
		outs := make([][]Outcome, copies)
		var wg sync.WaitGroup
		for c := range copies {
			outs[c] = make([]Outcome, intents)
			for i := range intents {
				wg.Go(func() {
					// The previous round has already decided half of these intents.
					out, err := decide(t.Context(), l, "acme", entry(intent(round*intents/2+i), engine.Allow))
					if err != nil {
						t.Errorf("Commit = %v", err)
						return
					}
					outs[c][i] = out
				})
			}
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		checkCopies(t, keys, outs)
		if got, want := ordinal(t, l, "acme"), int64((round+2)*intents/2+1); got != want {
			t.Errorf("ordinal = %d, want %d", got, want)
		}
		tip = checkHeads(t, store, keys, tip)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if err := store.Close(); err != nil {
			t.Errorf("closing the store = %v", err)
		}
	}
}

// checkCopies checks that all copies of an intent got the same decision. The first index of outs is
// the copy, the second the intent.
func checkCopies(t *testing.T, keys receipt.Keys, outs [][]Outcome) {
	t.Helper()
	for i, first := range outs[0] {
		if err := receipt.Verify(first.Record.Receipt, keys, first.Record.DecidedAt); err != nil {
			t.Errorf("Verify = %v", err)
		}
		for _, others := range outs[1:] {
			if got, want := encode(others[i].Record), encode(first.Record); got != want {
				t.Errorf("two records of one intent:\n%s\n%s", got, want)
			}
		}
	}
}

// checkHeads verifies the whole chain of store and returns its new tip. The chain must continue
// tip.
func checkHeads(t *testing.T, store *embedded.Store, keys receipt.Keys, tip receipt.Chain) receipt.Chain {
	t.Helper()
	var heads []receipt.SignedHead
	now, err := store.Tip(t.Context())
	must(t, err)
	err = store.Heads(t.Context(), now.ID, tip.Seq+1, func(h receipt.SignedHead) error {
		heads = append(heads, h)
		return nil
	})
	if err != nil || len(heads) == 0 {
		t.Fatalf("Heads = %d, %v, want some", len(heads), err)
	}
	if tip.Seq == 0 {
		tip.ID = heads[0].Chain
	}
	end, err := receipt.VerifyChain(tip, slices.Values(heads), keys)
	if err != nil {
		t.Errorf("VerifyChain = %v", err)
	}
	return end
}
