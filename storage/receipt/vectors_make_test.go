package receipt

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

const vectorNow = 1_800_000_000

var vectorChain = [16]byte([]byte("test-vectors-001"))

// vectorSigners returns the signers of the vectors. The first two are trusted, and the
// third is not.
func vectorSigners() (signer, second, foreign *Signer) {
	return testSigner(1), testSigner(2), testSigner(3)
}

func vectorPayload() Payload {
	p := examplePayload()
	p.OrganizationID = "org_\u00e9\u20ac\U0001f600\"\\\n\u0001"
	p.Reasons = []string{"cost.over: 5001 is over the cap of 5000 EUR", "resource.blocked: the resource is blocked"}
	p.Decision = Deny
	return p
}

// vectorReceipts returns n unsigned receipts. Their decisions alternate between allow, deny and
// approval_required.
func vectorReceipts(batch, n int) []Receipt {
	decisions := []string{Allow, Deny, ApprovalRequired}
	rs := make([]Receipt, n)
	for i := range rs {
		rs[i] = Receipt{
			Decision:   decisions[i%len(decisions)],
			DecisionID: fmt.Sprintf("0198f3c2-7a10-7000-8%03d-%012d", batch, i),
			Digest:     DigestBytes(fmt.Appendf(nil, "%d/%d", batch, i)),
			Exp:        vectorNow + 300,
		}
	}
	return rs
}

func makeVectors(t *testing.T) vectors {
	signer, second, _ := vectorSigners()
	v := vectors{
		About: "Receipts of package writ.example/writ/storage/receipt. chain: each must verify with keys at now. " +
			"refused: each must fail at its own now with its class of error.",
		Now:  vectorNow,
		Keys: keysOf(t, signer.Public(), second.Public()).JWKS(),
	}
	tip := Chain{ID: vectorChain}
	var seven, three []Receipt
	for i, size := range []int{1, 2, 3, 7, 64} {
		rs := vectorReceipts(i+1, size)
		if size == 1 {
			p := vectorPayload()
			rs[0] = Receipt{Decision: p.Decision, DecisionID: p.DecisionID, Digest: p.Digest(), Exp: p.Exp}
		}
		b, head := makeBatch(t, signer, tip, time.UnixMilli(vectorNow*1000+int64(i)), rs)
		tip = tip.Next(head.Head)
		v.Chain = append(v.Chain, b)
		switch size {
		case 3:
			three = rs
		case 7:
			seven = rs
		}
	}
	p := vectorPayload()
	v.Payload = payloadVector{string(p.AppendCanonical(nil)), p.Digest(), v.Chain[0].Receipts[0].Receipt}
	v.Refused = slices.Concat(refusedMembers(t, seven), refusedSigs(t, seven, three), refusedJSON(t, seven), refusedKeys(t, seven))
	return v
}

func makeBatch(t *testing.T, s *Signer, tip Chain, at time.Time, rs []Receipt) (batchVector, SignedHead) {
	leaves := make([][32]byte, len(rs))
	for i := range rs {
		rs[i].KeyID = s.KeyID()
		leaves[i] = rs[i].LeafHash()
	}
	head, sigs, _ := s.Seal(tip, at, leaves)
	stored, err := head.MarshalBinary()
	must(t, err)
	sum := head.Hash()
	b := batchVector{
		SignedHead: hex.EncodeToString(stored),
		HeadBytes:  hex.EncodeToString(head.Bytes()),
		HeadHash:   hex.EncodeToString(sum[:]),
		Size:       head.Size,
	}
	for i := range rs {
		rs[i].Sig = sigs[i]
		if i < 7 || i == len(rs)/2 || i == len(rs)-1 {
			b.Receipts = append(b.Receipts, receiptVector{uint32(i), string(rs[i].AppendLeaf(nil)), hex.EncodeToString(leaves[i][:]), encode(t, rs[i])})
		}
	}
	return b, head
}

func encode(t testing.TB, r Receipt) string {
	t.Helper()
	data, err := json.Marshal(r)
	must(t, err)
	return string(data)
}

// These are the offsets of a sig's fields: see the package documentation.
const (
	atChain, atSeq, atSize, atTime, atPrev = 1, 17, 25, 29, 37
	atR, atS, atIndex, atProof             = 69, 101, 133, 137
)

// editSig returns r with the bytes of its sig changed.
func editSig(t testing.TB, r Receipt, edit func(b []byte) []byte) Receipt {
	t.Helper()
	b, err := encoding().DecodeString(r.Sig)
	must(t, err)
	r.Sig = encoding().EncodeToString(edit(b))
	return r
}

// flip returns r with one bit of its sig changed.
func flip(t testing.TB, r Receipt, at int) Receipt {
	t.Helper()
	return editSig(t, r, func(b []byte) []byte { b[at] ^= 1; return b })
}

// refuser collects vectors that must be refused.
type refuser struct {
	t   *testing.T
	out []refusedVector
}

func (c *refuser) receipt(name, class, because string, r Receipt) {
	c.t.Helper()
	c.text(name, class, because, encode(c.t, r))
}

func (c *refuser) text(name, class, because, data string) {
	c.out = append(c.out, refusedVector{Name: name, Error: class, Because: because, Now: vectorNow, Receipt: data})
}

const (
	noVerify = "signature does not verify"
	badB64   = "not canonical base64url"
)

// refusedMembers returns vectors with a changed member that the leaf covers.
func refusedMembers(t *testing.T, batch []Receipt) []refusedVector {
	c := &refuser{t: t}
	_, second, _ := vectorSigners()
	base := batch[3]
	edit := func(name, class, because string, f func(r *Receipt)) {
		r := base
		f(&r)
		c.receipt(name, class, because, r)
	}
	edit("decision changed", "signature", noVerify, func(r *Receipt) { r.Decision = Deny })
	edit("decision_id changed", "signature", noVerify, func(r *Receipt) { r.DecisionID = batch[2].DecisionID })
	edit("digest changed", "signature", noVerify, func(r *Receipt) { r.Digest = batch[2].Digest })
	edit("exp extended", "signature", noVerify, func(r *Receipt) { r.Exp++ })
	edit("kid of another trusted key", "signature", noVerify, func(r *Receipt) { r.KeyID = second.KeyID() })
	edit("kid of no trusted key", "unknown_key", "unknown key", func(r *Receipt) { r.KeyID = strings.ToLower(r.KeyID) })
	edit("kid empty", "malformed", "kid is not", func(r *Receipt) { r.KeyID = "" })
	edit("decision unknown", "malformed", `decision "allowed"`, func(r *Receipt) { r.Decision = "allowed" })
	edit("decision_id empty", "malformed", "decision_id is empty", func(r *Receipt) { r.DecisionID = "" })
	edit("digest in upper case", "malformed", "digest is not", func(r *Receipt) { r.Digest = "sha256:" + strings.ToUpper(r.Digest[7:]) })
	edit("digest without algorithm", "malformed", "digest is not", func(r *Receipt) { r.Digest = r.Digest[7:] })
	edit("exp negative", "malformed", "exp -1 is out of range", func(r *Receipt) { r.Exp = -1 })
	edit("exp not a safe integer", "malformed", "exp 9007199254740992 is out of range", func(r *Receipt) { r.Exp = maxSafeInt + 1 })
	edit("sig empty", "malformed", "sig: 0 bytes", func(r *Receipt) { r.Sig = "" })
	swapped := base
	swapped.Sig = batch[4].Sig
	c.receipt("sig of another leaf", "signature", noVerify, swapped)
	other := batch[4]
	other.Sig = base.Sig
	c.receipt("leaf under another's sig", "signature", noVerify, other)
	c.receipt("expired", "expired", "expired", base)
	c.out[len(c.out)-1].Now = base.Exp
	c.receipt("expired and forged", "signature", noVerify, flip(t, base, atS))
	c.out[len(c.out)-1].Now = base.Exp + 1000
	return c.out
}

// groupOrder returns the order of Ed25519's group.
func groupOrder() *big.Int {
	low, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	return low.Add(low, new(big.Int).Lsh(big.NewInt(1), 252))
}

// addOrder adds the order of the group to the S half of the signature.
func addOrder(b []byte) []byte {
	s := b[atS:atIndex]
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), groupOrder())
	sum.FillBytes(s)
	slices.Reverse(s)
	return b
}
