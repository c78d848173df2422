package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

func proveLog(t *testing.T, log *storagetest.MemoryLog, anchors ...receipt.SignedHead) (Proof, error) {
	t.Helper()
	return Prove(t.Context(), log, ProveConfig{Keys: testKeys(t, testSigner(1)), Anchors: anchors})
}

// TestProve_ChainDeletedWhole deletes a chain with everything under its heads. If nothing else in
// the history refers to the chain, only an anchor of the chain can show the loss.
func TestProve_ChainDeletedWhole(t *testing.T) {
	log := storagetest.NewMemoryLog()
	for i, name := range []string{"a", "b"} {
		l := open(t, fakeOn(log), func(c *Config) { c.Writer = name })
		mustDecide(t, l, "acme", intent(i))
	}
	whole, err := proveLog(t, log)
	must(t, err)
	of := func(name string) receipt.SignedHead {
		r := log.Records[slices.IndexFunc(log.Records, func(r *storage.Record) bool { return r.Writer == name })]
		h, err := r.Receipt.SignedHead()
		must(t, err)
		return h
	}
	kept, gone := of("a"), of("b")
	maps.DeleteFunc(log.ByChain, func(id [16]byte, _ []receipt.SignedHead) bool { return id == gone.Chain })
	log.Records = slices.DeleteFunc(log.Records, func(r *storage.Record) bool { return r.Writer == "b" })

	if got, err := proveLog(t, log, kept); err != nil || got.Unanchored != 0 {
		t.Errorf("Prove with an anchor of the other chain = %+v, %v: nothing tells of the one that is gone", got, err)
	}
	want := fmt.Sprintf("head 1: the anchor is of chain %x, of which the history has no head", gone.Chain)
	for _, anchors := range [][]receipt.SignedHead{{gone}, whole.Ends} {
		if _, err := proveLog(t, log, anchors...); err == nil || err.Error() != want {
			t.Errorf("Prove with its anchor = %v, want %s", err, want)
		}
	}
}

// endsElsewhere is a history whose list of chains gives an end that is later than the last head.
type endsElsewhere struct{ headsOnly }

func (h endsElsewhere) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return h.headsOnly.Chains(ctx, func(end receipt.Chain) error {
		end.Seq++
		return f(end)
	})
}

func TestProve_EndOfChain(t *testing.T) {
	h, _, _ := testSigner(1).Seal(receipt.Chain{ID: [16]byte{'t'}}, noon, nil)
	_, err := Prove(t.Context(), endsElsewhere{headsOnly{h}}, ProveConfig{Keys: testKeys(t, testSigner(1))})
	if want := "head 2: the chain ends there, and its heads end at head 1 or with another"; err == nil || err.Error() != want {
		t.Errorf("Prove = %v, want %s", err, want)
	}
}
