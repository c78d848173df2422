package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"writ/engine"
	"writ/storage"
	"writ/storage/receipt"
	"writ/storage/storagetest"
)

// severalChains is a history that three ledgers have written: a, b and c, each under
// its own chain. All have decided for acme, in turn; b has settled what a decided, a
// row of a's and its settlement by b are removed, as c has announced.
func severalChains(t *testing.T) (log *storagetest.MemoryLog, chains map[string][16]byte) {
	t.Helper()
	log, chains = storagetest.NewMemoryLog(), make(map[string][16]byte)
	writers := []string{"a", "b", "c"}
	ledgers := make(map[string]*Ledger)
	now := &clock{now: noon}
	for _, name := range writers {
		store := fakeOn(log)
		tip, err := store.Tip(t.Context())
		must(t, err)
		chains[name] = tip.ID
		ledgers[name] = open(t, store, func(c *Config) { c.Writer, c.Now = name, now.Now })
	}
	for i := range 9 {
		now.set(noon.Add(time.Duration(i) * time.Minute))
		l := ledgers[writers[i%3]]
		out, err := decide(t.Context(), l, "acme", entry(intent(i), engine.Allow))
		if err == nil {
			_, err = decide(t.Context(), ledgers["b"], "acme", entry(intent(i), engine.Allow)) // the first answer, whoever is asked
		}
		if err == nil && i%3 == 0 {
			_, _, err = ledgers["b"].Settle(t.Context(), "acme", out.Record.DecisionID, storage.Settlement{Outcome: storage.Executed, RecordedAt: now.Now()})
		}
		must(t, err)
	}
	must(t, ledgers["c"].Retain(t.Context(), "acme", noon.Add(time.Hour), storage.Expired{Records: 1, Settled: 1}))
	must(t, log.Bury("acme"))
	return log, chains
}

func proveLog(t *testing.T, log *storagetest.MemoryLog, anchors ...receipt.SignedHead) (Proof, error) {
	t.Helper()
	return Prove(t.Context(), log, ProveConfig{Keys: testKeys(t, testSigner(1)), Anchors: anchors})
}

func TestProve_SeveralChains(t *testing.T) {
	log, _ := severalChains(t)
	got, err := proveLog(t, log)
	if err != nil || len(got.Ends) != 3 || got.Unanchored != 3 || got.Rows != 8 || got.Settled != 2 || got.Removed != 1 || got.Removals != 1 || got.Heads != 13 {
		t.Errorf("Prove = %+v, %v, want 8 rows, 2 settlements, 1 removal and 1 tombstone under 13 heads of 3 chains", got, err)
	}
	got, err = proveLog(t, log, got.Ends...)
	if err != nil || got.Unanchored != 0 {
		t.Errorf("Prove with an anchor of each chain = %+v, %v", got, err)
	}
}

// TestProve_ChainDeletedWhole deletes a chain with all that is under its heads. Where
// nothing else speaks of it, its anchor alone tells.
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

// endsElsewhere is a history whose chain is noted to end after its last head.
type endsElsewhere struct{ headsOnly }

func (h endsElsewhere) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	return h.headsOnly.Chains(ctx, func(end receipt.Chain) error {
		end.Seq++
		return f(end)
	})
}

func TestProve_EndOfChain(t *testing.T) {
	h, _ := testSigner(1).Seal(receipt.Chain{ID: [16]byte{'t'}}, noon, nil)
	_, err := Prove(t.Context(), endsElsewhere{headsOnly{h}}, ProveConfig{Keys: testKeys(t, testSigner(1))})
	if want := "head 2: the chain ends there, and its heads end at head 1 or with another"; err == nil || err.Error() != want {
		t.Errorf("Prove = %v, want %s", err, want)
	}
}
