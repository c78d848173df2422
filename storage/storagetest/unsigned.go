package storagetest

import (
	"strings"

	"writ/ledger/receipt"
	"writ/storage"
)

// Unsigned returns a seal on tip whose signatures have the usual length and are
// nobody's: benchmarks of a store measure it without the cost of signing.
func Unsigned(tip receipt.Chain) storage.Seal {
	sig := strings.Repeat("s", 400)
	return func(fresh []*storage.Record) ([]*storage.Record, receipt.SignedHead, error) {
		for _, r := range fresh {
			r.Receipt.Sig = sig
		}
		h := receipt.Head{Chain: tip.ID, Seq: tip.Seq + 1, Prev: tip.Prev, Size: uint32(len(fresh))}
		return fresh, receipt.SignedHead{Head: h, KeyID: "k"}, nil
	}
}
