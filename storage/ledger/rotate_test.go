package ledger

import (
	"fmt"
	"testing"

	"writ.example/writ/engine"
)

// TestDecision_Receipts_KeysRotateWhileItDecides checks that every receipt names the key that
// signed it. The key may change while the commit waits.
func TestDecision_Receipts_KeysRotateWhileItDecides(t *testing.T) {
	store := newFake()
	store.commitGate = make(chan gated)
	l := open(t, store)
	before := goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow))
	gate := <-store.commitGate // the batch has reached the store but has no seal yet
	var waiting []<-chan result
	for i := range 3 {
		waiting = append(waiting, goDecide(t.Context(), l, fmt.Sprint("org-", i), entry(intent(1+i), engine.Allow)))
	}
	awaitQueued(l, 3)
	l.SignWith(testSigner(2))
	close(gate.open)
	go func() {
		for g := range store.commitGate {
			close(g.open)
		}
	}()
	for _, done := range append(waiting, before) {
		if r := <-done; r.err != nil || r.out.Record.Receipt.KeyID != testSigner(2).KeyID() {
			t.Errorf("Commit = %+v, %v, want a receipt of the new key", r.out.Record, r.err)
		}
	}
	store.check(t, testKeys(t, testSigner(1), testSigner(2)))
	mustDecide(t, l, "acme", intent(9))
	store.check(t, testKeys(t, testSigner(2)))
}
