package evidence

import (
	"testing"

	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// TestVerifyChain_CountsFitALine checks that the counts of 1,000,000 decisions fit into a line of
// 100 columns.
func TestVerifyChain_CountsFitALine(t *testing.T) {
	line := "data: whole: " + counts(ledger.Proof{
		Ends: make([]receipt.SignedHead, 1), Heads: 62_500, Rows: 1_000_000, Settled: 9_999, Changes: 999, Removals: 9,
		Removed: 9_999,
	})
	if len(line) > 100 {
		t.Errorf("%q has %d columns, want at most 100", line, len(line))
	}
	line = counts(ledger.Proof{Verdicts: 1})
	if want := "0 chains, 0 heads, 0 decisions, 0 settled, 0 changes, 0 removals of 0, 1 verdict"; line != want {
		t.Errorf("counts = %q, want %q", line, want)
	}
}
