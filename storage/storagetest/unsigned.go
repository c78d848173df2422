package storagetest

import (
	"crypto/ed25519"
	"time"

	"writ/storage"
	"writ/storage/receipt"
)

// Unsigned returns a seal whose heads are over their leaves, and whose signatures are nobody's:
// benchmarks of a store measure it without the cost of signing.
func Unsigned() storage.Seal {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	_, sigs := signer.Seal(receipt.Chain{}, time.Time{}, make([][32]byte, 64))
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		leaves := make([][32]byte, len(fresh.Records))
		for i, r := range fresh.Records {
			r.Receipt.Sig, r.Receipt.KeyID = sigs[0], signer.KeyID()
			leaves[i] = r.Receipt.LeafHash()
		}
		h := receipt.Head{Chain: tip.ID, Seq: tip.Seq + 1, Prev: tip.Prev, Size: uint32(len(leaves)), Root: receipt.Root(leaves)}
		return fresh, receipt.SignedHead{Head: h, KeyID: signer.KeyID()}, nil
	}
}
