//go:build unix

package embedded

import (
	"fmt"
	"testing"

	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/receipt"
)

// BenchmarkProve proves 1,000,000 rows of four organizations, or as many as WRIT_ROWS says. The ledger has written the rows in
// batches of 16. cpu-ns/row is the processor time per row. Run it with -benchtime 1x.
func BenchmarkProve(b *testing.B) {
	const size = 16
	rows := int(benchRows(1_000_000))
	dir := b.TempDir() + "/store"
	s, err := Open(dir, Options{WriteBehind: 1024})
	must(b, err)
	l, err := ledger.Open(b.Context(), ledger.Config{Store: s, Signer: signerOf(1), Scrub: ledgertest.Plain{}})
	must(b, err)
	for n := 0; n < rows; n += size {
		org := fmt.Sprintf("org-%d", n/size%4)
		if _, err := ledgertest.Decide(b.Context(), l, org, n, size); err != nil {
			b.Fatal(err)
		}
	}
	must(b, l.Close(b.Context()))
	must(b, s.Close())
	keys, err := receipt.NewKeys(signerOf(1).Public())
	must(b, err)
	for b.Loop() {
		start := processorTime(b)
		r, err := OpenReadOnly(dir, Options{})
		must(b, err)
		got, err := ledger.Prove(b.Context(), r, ledger.ProveConfig{Keys: keys})
		if err != nil || got.Rows != rows || got.Heads != rows/size {
			b.Fatalf("Prove = %+v, %v", got, err)
		}
		must(b, r.Close())
		b.ReportMetric(float64(processorTime(b)-start)/float64(rows), "cpu-ns/row")
	}
}
