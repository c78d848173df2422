package storagetest

import (
	"crypto/ed25519"
	"time"

	"writ/ledger/receipt"
	"writ/storage"
)

// Unsigned returns a seal whose signatures are well-formed and nobody's:
// benchmarks of a store measure it without the cost of signing.
func Unsigned() storage.Seal {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	_, sigs := signer.Seal(receipt.Chain{}, time.Time{}, make([][32]byte, 64))
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		for _, r := range fresh.Records {
			r.Receipt.Sig = sigs[0]
		}
		h := receipt.Head{Chain: tip.ID, Seq: tip.Seq + 1, Prev: tip.Prev, Size: uint32(len(fresh.Records))}
		return fresh, receipt.SignedHead{Head: h, KeyID: "k"}, nil
	}
}
