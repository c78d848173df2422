package receipt

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"
)

var benchTime = time.Unix(1_800_000_000, 0)

func benchReceipts(s *Signer, n int) []Receipt {
	rs := make([]Receipt, n)
	for i := range rs {
		rs[i] = Receipt{
			Decision:   Allow,
			DecisionID: fmt.Sprintf("0198f3c2-7a10-7c3e-9d41-%012d", i),
			Digest:     DigestBytes(fmt.Append(nil, i)),
			Exp:        benchTime.Unix() + 300,
			KeyID:      s.KeyID(),
		}
	}
	return rs
}

// BenchmarkSign measures one signature over a head's bytes. This is the minimum cost of a batch.
func BenchmarkSign(b *testing.B) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	msg := Head{}.Bytes()
	b.ReportAllocs()
	for b.Loop() {
		ed25519.Sign(key, msg)
	}
}

// BenchmarkSeal measures a batch: hashing the leaves, sealing, and storing each sig.
func BenchmarkSeal(b *testing.B) {
	s := NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	for _, size := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			rs := benchReceipts(s, size)
			leaves := make([][32]byte, size)
			var tip Chain
			b.ReportAllocs()
			for b.Loop() {
				for i := range rs {
					leaves[i] = rs[i].LeafHash()
				}
				head, sigs, _ := s.Seal(tip, benchTime, leaves)
				for i := range rs {
					rs[i].Sig = sigs[i]
				}
				tip = tip.Next(head.Head)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/receipt")
			keys, err := NewKeys(s.Public())
			must(b, err)
			for i := range rs {
				if err := Verify(rs[i], keys, benchTime); err != nil {
					b.Fatalf("Verify(receipt %d) = %v", i, err)
				}
			}
		})
	}
}

func BenchmarkLeafHash(b *testing.B) {
	s := NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	r := benchReceipts(s, 1)[0]
	b.ReportAllocs()
	for b.Loop() {
		r.LeafHash()
	}
}

func BenchmarkPayloadDigest(b *testing.B) {
	p := examplePayload()
	b.ReportAllocs()
	for b.Loop() {
		p.Digest()
	}
}

func BenchmarkVerify(b *testing.B) {
	s := NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	rs := benchReceipts(s, 64)
	keys := seal(b, s, Chain{}, rs)
	b.ReportAllocs()
	for b.Loop() {
		must(b, Verify(rs[37], keys, benchTime))
	}
}
