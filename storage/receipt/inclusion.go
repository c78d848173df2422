package receipt

import (
	"crypto/sha256"
	"fmt"
)

// Inclusion proves that a leaf is under a signed head. Entries, which are not decisions, have an
// Inclusion as their receipt. Do not trust an Inclusion before [Inclusion.Verify].
type Inclusion struct {
	Sig   string `json:"sig"` // has the format of a receipt's sig
	KeyID string `json:"kid"`
}

// EntryLeaf returns SHA-256(0x00 || entry), the leaf hash of an entry. The entry must be the
// canonical JSON of an object with the member entry: see the package documentation.
func EntryLeaf(entry []byte) [32]byte {
	var buf [1024]byte
	return sha256.Sum256(append(append(buf[:0], leafPrefix), entry...))
}

// SignedHead returns the head that i claims for leaf. It works like [Receipt.SignedHead].
func (i Inclusion) SignedHead(leaf [32]byte) (SignedHead, error) {
	h, _, err := headOver(leaf, i.Sig, i.KeyID)
	return h, err
}

// Verify returns nil if i names a key of keys that has signed leaf. Otherwise the error is
// ErrMalformed, ErrUnknownKey or ErrSignature.
func (i Inclusion) Verify(leaf [32]byte, keys Keys) error {
	h, err := i.SignedHead(leaf)
	if err != nil {
		return err
	}
	return h.Verify(keys)
}

// Leaf has the hash and the place of a leaf. It remains when the content of the leaf is removed.
type Leaf struct {
	Chain [16]byte // Chain of the head that signs the leaf
	Seq   uint64   // Seq of that head
	Index uint32   // the leaf's index in the batch, from 0
	Hash  [32]byte
}

// Leaf returns a leaf at the place that i claims.
func (i Inclusion) Leaf(hash [32]byte) (Leaf, error) {
	h, index, err := headOver(hash, i.Sig, i.KeyID)
	return Leaf{Chain: h.Chain, Seq: h.Seq, Index: index, Hash: hash}, err
}

// Inclusion returns the proof of r's leaf.
func (r *Receipt) Inclusion() Inclusion { return Inclusion{Sig: r.Sig, KeyID: r.KeyID} }

// Root returns the root of the Merkle tree of leaves.
func Root(leaves [][32]byte) [32]byte { return newTree(leaves).root() }

// headOver returns the head that a sig claims for a leaf, and the leaf's index. It computes the
// root of the head.
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

// Chain returns the chain of the head that i claims. It costs less than [Inclusion.SignedHead].
func (i Inclusion) Chain() (chain [16]byte, err error) {
	const chars = 24 // decode to the version, the chain and one more byte
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

// Forest computes the root of a tree whose leaves are added one after another. The size of a Forest
// grows with the logarithm of the number of leaves. The zero value has no leaves.
type Forest struct {
	n     uint64
	nodes [][32]byte // roots of complete trees, the largest first: one for each set bit of n
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

// Root returns the [Root] of all added leaves.
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

// Sigs returns the Sig of each leaf's receipt. They equal the strings that Seal returned together
// with h. The error is ErrMalformed if h is not a head over these leaves.
func (h *SignedHead) Sigs(leaves [][32]byte) ([]string, error) {
	if t := newTree(leaves); uint64(h.Size) == uint64(len(leaves)) && h.Root == t.root() {
		return sigs(h, t), nil
	}
	return nil, fmt.Errorf("%w: head %d is over other leaves", ErrMalformed, h.Seq)
}
