package receipt

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Signer seals batches with one Ed25519 key. It is immutable and safe for concurrent use. If a
// Signer is printed, the output has the key id, never the key.
type Signer struct {
	priv ed25519.PrivateKey
	kid  string
}

// NewSigner returns a signer with a copy of priv. It panics, as ed25519.Sign does, if priv is not
// ed25519.PrivateKeySize bytes long. NewSigner derives the public half from the seed again.
// Signatures with a wrong public half would reveal the private key.
func NewSigner(priv ed25519.PrivateKey) *Signer {
	if len(priv) != ed25519.PrivateKeySize {
		panic(fmt.Sprintf("receipt: private key of %d bytes", len(priv)))
	}
	own := ed25519.NewKeyFromSeed(priv.Seed())
	return &Signer{priv: own, kid: KeyID(publicHalf(own))}
}

func publicHalf(priv ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(priv[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// KeyID returns the thumbprint of the public key. Set Receipt.KeyID to it before calling LeafHash.
func (s *Signer) KeyID() string { return s.kid }

// Public returns a copy of the public key.
func (s *Signer) Public() ed25519.PublicKey {
	return append(ed25519.PublicKey(nil), publicHalf(s.priv)...)
}

// Format prints the key id for every verb.
func (s *Signer) Format(f fmt.State, _ rune) {
	// Format has no way to report a failed write.
	_, _ = io.WriteString(f, "receipt.Signer("+s.kid+")")
}

// Seal signs a batch. It makes the head that follows c, with the given time and the root of the
// tree of leaves. It returns the signed head and the Sig of each leaf's receipt, in the order of
// leaves. Seal costs one signature, len(leaves)-1 hashes and a few allocations. The returned
// strings share memory. To keep one string much longer than the other ones, copy it.
//
// The same arguments give the same result. Seal does not advance c. Once the batch is
// durable, c.Next(head.Head) is the next tip. If two batches are sealed on the same tip,
// the chain forks, and VerifyChain reports this.
//
// Without leaves Seal signs the empty tree, whose root is SHA-256 of nothing. Seal panics for more
// than 2^32-1 leaves.
func (s *Signer) Seal(c Chain, at time.Time, leaves [][32]byte) (SignedHead, []string) {
	if len(leaves) > math.MaxUint32 {
		panic(fmt.Sprintf("receipt: batch of %d leaves", len(leaves)))
	}
	t := newTree(leaves)
	h := SignedHead{KeyID: s.kid, Head: Head{
		Chain:     c.ID,
		Seq:       c.Seq + 1,
		Size:      uint32(len(leaves)),
		UnixMilli: at.UnixMilli(),
		Prev:      c.Prev,
		Root:      t.root(),
	}}
	var buf [headLen]byte
	copy(h.Sig[:], ed25519.Sign(s.priv, h.append(buf[:0])))
	return h, sigs(&h, t)
}

// sigs encodes all strings in one buffer. Each string begins with the bytes that the batch shares.
// The base64 of these bytes is computed once, except for the last byte. That byte shares a base64
// group of three bytes with the index.
func sigs(h *SignedHead, t tree) []string {
	const shared = sigBatchLen / 3 * 3
	var room [sigMaxLen]byte
	raw := appendSigBatch(room[:0], h)
	var chars [sigMaxChars]byte
	prefix := base64.RawURLEncoding.AppendEncode(chars[:0], raw[:shared])
	var all strings.Builder
	all.Grow(int(h.Size) * base64.RawURLEncoding.EncodedLen(sigMinLen+(len(t)-1)*sha256.Size))
	out := make([]string, h.Size)
	for i := range out {
		leaf := t.appendProof(binary.BigEndian.AppendUint32(raw, uint32(i)), i)
		start := all.Len()
		all.Write(base64.RawURLEncoding.AppendEncode(prefix, leaf[shared:]))
		out[i] = all.String()[start:]
	}
	return out
}
