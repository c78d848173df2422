package transfer_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// TestImport_OfTheFormatBefore imports a file that a writ without findings wrote. Its rows verify with
// their signatures as they were. They have no findings, and their LeftOut is computed. The same holds
// after they have been exported and imported once more.
func TestImport_OfTheFormatBefore(t *testing.T) {
	file := "testdata/older.ndjson"
	jwks, err := os.ReadFile("testdata/older.jwks")
	must(t, err)
	keys, err := receipt.ParseKeys(jwks)
	must(t, err)
	want := []string{
		"prod/web: metadata.env", "https://e.example/a: metadata.env", "prod/web: ", "https://e.example/a: agent_id issued_at resource",
		"prod/web: metadata", "https://e.example/a: agent_id issued_at resource", "prod/web: ", "https://e.example/a: agent_id issued_at resource",
	}
	for round, key := range []byte{2, 3} {
		to := inMemory(key)
		if _, err := to.importInto(t, file, keys); err != nil {
			t.Fatalf("round %d: Import = %v", round, err)
		}
		var got []string
		to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
			rows, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
			must(t, err)
			slices.Reverse(rows)
			for _, r := range rows {
				if err := ledger.VerifyRow(r); err != nil || r.Findings != nil {
					t.Errorf("round %d: VerifyRow = %v, findings = %v", round, err, r.Findings)
				}
				got = append(got, r.Resource+": "+strings.Join(r.LeftOut, " "))
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round %d: left out (-want +got):\n%s", round, diff)
		}
		file, _ = to.export(t)
	}
}
