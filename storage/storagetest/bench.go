package storagetest

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Unsigned returns a seal that makes correct heads with invalid signatures. With Unsigned a
// benchmark measures a store without the cost of signing.
func Unsigned() storage.Seal {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	_, sigs, _ := signer.Seal(receipt.Chain{}, time.Time{}, make([][32]byte, 64))
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

// BenchRecord returns the n-th record of a store that has orgs organizations.
func BenchRecord(n, orgs uint64) *storage.Record {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(n) * 20 * time.Microsecond)
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|0x7000|n%50)
	binary.BigEndian.PutUint64(id[8:], n*0x9e3779b97f4a7c15&^(1<<62)|1<<63)
	intent := uuid.NewSHA1(uuid.Nil, id[:]).String()
	decision := engine.Decision(n%3 + 1)
	return &storage.Record{
		OrganizationID: fmt.Sprintf("org-%d", n%orgs),
		IntentID:       intent,
		IntentDigest:   "sha256:" + strings.Repeat("0a", 32),
		DecisionID:     id.String(),
		PolicyID:       "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		PolicyVersion:  3,
		AgentID:        "team-a/deployer",
		ActionType:     "deploy",
		Resource:       "https://example.com/prod/api",
		Cost:           &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
		MetadataKeys:   []string{"env", "ticket"},
		Decision:       decision,
		Reasons:        []string{"policy.allowed: the policy allows the action"},
		IssuedAt:       "2026-11-21T11:59:59Z",
		DecidedAt:      at,
		Receipt: receipt.Receipt{
			Decision: decision.String(), DecisionID: id.String(), Digest: "sha256:" + strings.Repeat("1f", 32),
			Exp: at.Unix() + 300, KeyID: "9ZP03Nu8GrXPAUkbKNxHOKBzxPX83SShgFkRNK-f2lw",
		},
	}
}
