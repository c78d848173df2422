package ledger_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
	"writ.example/writ/storage/storagetest/forged"
)

func TestProve_Forged(t *testing.T) {
	forged.Run(t, forged.Backend{Load: func(_ *testing.T, h *forged.History) ledger.History { return h }})
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func prove(t *testing.T, h ledger.History, anchors ...receipt.SignedHead) (ledger.Proof, error) {
	t.Helper()
	return ledger.Prove(t.Context(), h, ledger.ProveConfig{Keys: forged.Keys(t), Anchors: anchors})
}

func TestProve_SeveralChains(t *testing.T) {
	h, _ := forged.SeveralChains(t)
	got, err := prove(t, h.MemoryLog)
	if err != nil || len(got.Ends) != 3 || got.Unanchored != 3 || got.Rows != 8 || got.Settled != 2 || got.Removed != 1 || got.Removals != 1 || got.Heads != 13 {
		t.Errorf("Prove = %+v, %v, want 8 rows, 2 settlements, 1 removal and 1 tombstone under 13 heads of 3 chains", got, err)
	}
	got, err = prove(t, h.MemoryLog, got.Ends...)
	if err != nil || got.Unanchored != 0 {
		t.Errorf("Prove with an anchor of each chain = %+v, %v", got, err)
	}
}

func TestProve_Imports(t *testing.T) {
	h, _, _ := forged.Moved(t)
	got, err := prove(t, h.MemoryLog)
	want := ledger.Foreign{Organizations: 1, Rows: 6, Settled: 2, Removed: 1}
	if err != nil || got.Foreign != want || got.Rows != 8 || len(got.Unfinished) > 0 {
		t.Errorf("Prove = %+v, %v, want %+v of 8 rows", got, err, want)
	}
	i := slices.IndexFunc(h.Others, func(e *storage.Entry) bool { return e.Kind == storage.ImportEntry })
	signed, err := ledger.ParseImport(h.Others[i])
	if err != nil || signed.Rows != 7 || signed.Settled != 2 || signed.Removed != 1 || !signed.ImportedAt.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("the import is signed as %+v, %v", signed, err)
	}
	if _, err := ledger.Prove(t.Context(), h.MemoryLog, ledger.ProveConfig{}); err == nil {
		t.Error("Prove with other keys = nil, want an error")
	}
}

// TestProve_Imports_SettlementWithoutReceipt checks that an imported settlement without a receipt
// counts as a break of the history.
func TestProve_Imports_SettlementWithoutReceipt(t *testing.T) {
	h, _, _ := forged.Moved(t)
	i := slices.IndexFunc(h.Records, func(r *storage.Record) bool { return r.Settlement == nil })
	r := *h.Records[i]
	r.Settle(storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)})
	h.Records[i] = &r
	if _, err := prove(t, h.MemoryLog); err == nil || !strings.Contains(err.Error(), "its settlement has no receipt") {
		t.Errorf("Prove = %v, want a break", err)
	}
}

// TestProve_Imports_Unfinished checks an organization whose import is not finished. Its foreign
// rows need no import entry yet. The proof must name the organization.
func TestProve_Imports_Unfinished(t *testing.T) {
	open := storage.Document{Kind: storage.ImportKind, Org: "acme", Revision: 1, Value: []byte(`{"id":"x"}`)}
	begin := func(h *forged.History) *forged.History {
		h.Documents = []storage.Document{open}
		h.Waiting = []storage.Change{{Kind: open.Kind, Org: "acme", Revision: 1, Digest: sha256.Sum256(open.Value)}}
		return h
	}
	source, _ := forged.SeveralChains(t)
	h := &forged.History{MemoryLog: storagetest.NewMemoryLog()}
	if err := h.OpenLog().Import(t.Context(), "acme", source.Records[3:], source.Graves); err != nil {
		t.Fatal(err)
	}
	if _, err := prove(t, h.MemoryLog); err == nil || !strings.Contains(err.Error(), "no import entry is of the organization") {
		t.Errorf("Prove without an import under way = %v, want a break", err)
	}
	got, err := prove(t, begin(h))
	if err != nil || !slices.Equal(got.Unfinished, []string{"acme"}) {
		t.Errorf("Prove = %+v, %v, want acme's to be unfinished", got, err)
	}
	h, _, _ = forged.Moved(t)
	h.Meters = map[forged.Meter]int64{{Org: "acme", Month: 202611}: 1, {Org: "rival", Month: 202611}: 1}
	if got, err := prove(t, begin(h)); err != nil || len(got.Unfinished) > 0 {
		t.Errorf("Prove of an import that is signed = %+v, %v, want none unfinished", got, err)
	}
}
