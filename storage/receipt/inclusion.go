package receipt

import (
	"crypto/sha256"
	"fmt"
)

// Inclusion proves that a leaf is under a signed head. An entry, which is not a decision,
// has an Inclusion as its receipt. An Inclusion must not be trusted before
// [Inclusion.Verify].
type Inclusion struct {
	Sig   string `json:"sig"` // as a receipt's
	KeyID string `json:"kid"`
}

// EntryLeaf returns SHA-256(0x00 || entry), the leaf hash of an entry, which must
// be canonical JSON of an object with the member entry: see the package
// documentation.
func EntryLeaf(entry []byte) [32]byte {
	var buf [1024]byte
	return sha256.Sum256(append(append(buf[:0], leafPrefix), entry...))
}

// SignedHead returns the head that i claims for leaf, as [Receipt.SignedHead] does for a
// receipt.
func (i Inclusion) SignedHead(leaf [32]byte) (SignedHead, error) {
	h, _, err := headOver(leaf, i.Sig, i.KeyID)
	return h, err
}

// Verify returns nil if leaf was signed by the key of keys that i names. Otherwise the
// error is ErrMalformed, ErrUnknownKey or ErrSignature.
func (i Inclusion) Verify(leaf [32]byte, keys Keys) error {
	h, err := i.SignedHead(leaf)
	if err != nil {
		return err
	}
	return h.Verify(keys)
}

// Leaf has the hash and the place of a leaf. It is kept when the content of the leaf is
// removed.
type Leaf struct {
	Chain [16]byte // of the head that signs it
	Seq   uint64   // of that head
	Index uint32   // from 0
	Hash  [32]byte
}

// Leaf returns a leaf with the place that i claims for it.
func (i Inclusion) Leaf(hash [32]byte) (Leaf, error) {
	h, index, err := headOver(hash, i.Sig, i.KeyID)
	return Leaf{Chain: h.Chain, Seq: h.Seq, Index: index, Hash: hash}, err
}

// Inclusion returns the part of r that proves its leaf.
func (r *Receipt) Inclusion() Inclusion { return Inclusion{Sig: r.Sig, KeyID: r.KeyID} }

// Root returns the root of the tree of leaves.
func Root(leaves [][32]byte) [32]byte { return newTree(leaves).root() }

// headOver returns the head that a sig claims for a leaf, with the computed root, and the
// leaf's index.
func headOver(leaf [32]byte, text, kid string) (SignedHead, uint32, error) {
	if err := checkKeyID(kid); err != nil {
		return SignedHead{}, 0, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	s, err := decodeSig(text)
	if err != nil {
		return SignedHead{}, 0, fmt.Errorf("%w: sig: %w", ErrMalformed, err)
	}
	root, err := rootFromProof(leaf, s.index, s.head.Size, s.proof)
	if err != nil {
		return SignedHead{}, 0, fmt.Errorf("%w: sig: %w", ErrMalformed, err)
	}
	s.head.Root, s.head.KeyID = root, kid
	return s.head, s.index, nil
}

// Chain returns the chain of the head that i claims, at less cost than
// [Inclusion.SignedHead].
func (i Inclusion) Chain() (chain [16]byte, err error) {
	const chars = 24 // of version, chain and one byte more
	var b [chars * 6 / 8]byte
	if len(i.Sig) < chars {
		return chain, fmt.Errorf("%w: sig", ErrMalformed)
	}
	if _, err := encoding().Decode(b[:], []byte(i.Sig[:chars])); err != nil || b[0] != sigVersion {
		return chain, fmt.Errorf("%w: sig", ErrMalformed)
	}
	copy(chain[:], b[1:])
	return chain, nil
}

// Forest computes the root of a tree whose leaves are added one after the other. The size
// of a Forest grows with the logarithm of the number of leaves. The zero Forest has no
// leaves.
type Forest struct {
	n     uint64
	nodes [][32]byte // roots of complete trees, the greatest first: one for each bit of n
}

// Add adds the next leaf.
func (f *Forest) Add(leaf [32]byte) {
	for bits := f.n; bits&1 == 1; bits >>= 1 {
		last := len(f.nodes) - 1
		leaf = hashNode(&f.nodes[last], &leaf)
		f.nodes = f.nodes[:last]
	}
	f.nodes = append(f.nodes, leaf)
	f.n++
}

// Root returns [Root] of the added leaves.
func (f *Forest) Root() [32]byte {
	if f.n == 0 {
		return sha256.Sum256(nil)
	}
	root := f.nodes[len(f.nodes)-1]
	for i := len(f.nodes) - 2; i >= 0; i-- {
		root = hashNode(&f.nodes[i], &root)
	}
	return root
}

// Sigs returns the Sig of each leaf's receipt. These are the same strings that Seal
// returned together with h. Its error is ErrMalformed if h is not a head over these
// leaves.
func (h *SignedHead) Sigs(leaves [][32]byte) ([]string, error) {
	if t := newTree(leaves); uint64(h.Size) == uint64(len(leaves)) && h.Root == t.root() {
		return sigs(h, t), nil
	}
	return nil, fmt.Errorf("%w: head %d is over other leaves", ErrMalformed, h.Seq)
}
