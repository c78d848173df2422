package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"unicode/utf8"
)

const (
	// maxSafeInt is the largest integer n for which a double holds both n and n+1 exactly.
	maxSafeInt = 1<<53 - 1
	// maxKeyID bounds the length of a key id in bytes. A thumbprint has 43 bytes.
	maxKeyID = 256
)

const (
	headDomain = "writ/head/v1\n"
	headLen    = len(headDomain) + 16 + 8 + 4 + 8 + sha256.Size + sha256.Size
)

// Head is the message that a ledger signs for each batch. It has the root of the batch's tree and
// the hash of the previous head. The package documentation describes the bytes of a head.
type Head struct {
	Chain     [16]byte // the id of the ledger's chain
	Seq       uint64   // 1 for the first head, then ascending by 1
	Size      uint32   // the number of leaves in the batch
	UnixMilli int64    // the signing time by the ledger's clock; it need not increase
	Prev      [32]byte // hash of the previous head; zeros for the first head
	Root      [32]byte // the root of the batch's tree
}

// Bytes returns the 113 bytes that the signature covers.
func (h Head) Bytes() []byte {
	return h.append(make([]byte, 0, headLen))
}

func (h Head) append(dst []byte) []byte {
	dst = h.appendShared(append(dst, headDomain...))
	return append(dst, h.Root[:]...)
}

// appendShared appends the fields that both a head and a sig have: all except the root.
func (h Head) appendShared(dst []byte) []byte {
	dst = append(dst, h.Chain[:]...)
	dst = binary.BigEndian.AppendUint64(dst, h.Seq)
	dst = binary.BigEndian.AppendUint32(dst, h.Size)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.UnixMilli))
	return append(dst, h.Prev[:]...)
}

// readShared reverses appendShared. It returns the bytes after the shared fields.
func (h *Head) readShared(b []byte) []byte {
	b = b[copy(h.Chain[:], b):]
	h.Seq, b = binary.BigEndian.Uint64(b), b[8:]
	h.Size, b = binary.BigEndian.Uint32(b), b[4:]
	h.UnixMilli, b = int64(binary.BigEndian.Uint64(b)), b[8:]
	return b[copy(h.Prev[:], b):]
}

// Hash returns SHA-256(0x02 || Bytes). The next head has this hash as its Prev.
func (h Head) Hash() [32]byte {
	var buf [1 + headLen]byte
	return sha256.Sum256(h.append(append(buf[:0], headPrefix)))
}

// SignedHead is a head with its signature. Do not trust it before Verify.
type SignedHead struct {
	Head
	KeyID string // the key that verifies the signature; the signature does not cover it
	Sig   [64]byte
}

// Verify returns nil if keys has the key that KeyID names, and that key signed the head. Otherwise
// the error is ErrUnknownKey or ErrSignature.
func (h SignedHead) Verify(keys Keys) error {
	pub, ok := keys.byID[h.KeyID]
	if !ok {
		return fmt.Errorf("%w: %.64q", ErrUnknownKey, h.KeyID)
	}
	var buf [headLen]byte
	if !ed25519.Verify(pub, h.append(buf[:0]), h.Sig[:]) {
		return ErrSignature
	}
	return nil
}

// MarshalBinary returns the form in which heads are stored: head bytes, signature, key id.
func (h SignedHead) MarshalBinary() ([]byte, error) {
	if err := checkKeyID(h.KeyID); err != nil {
		return nil, fmt.Errorf("encoding head %d: %w", h.Seq, err)
	}
	dst := make([]byte, 0, headLen+len(h.Sig)+len(h.KeyID))
	dst = append(h.append(dst), h.Sig[:]...)
	return append(dst, h.KeyID...), nil
}

// UnmarshalBinary reads the form of MarshalBinary. An error is ErrMalformed. It does not verify the
// signature.
func (h *SignedHead) UnmarshalBinary(data []byte) error {
	if len(data) < headLen+len(h.Sig) {
		return fmt.Errorf("%w: signed head of %d bytes", ErrMalformed, len(data))
	}
	rest, ok := bytes.CutPrefix(data, []byte(headDomain))
	if !ok {
		return fmt.Errorf("%w: not a head", ErrMalformed)
	}
	var out SignedHead
	rest = out.readShared(rest)
	rest = rest[copy(out.Root[:], rest):]
	rest = rest[copy(out.Sig[:], rest):]
	out.KeyID = string(rest)
	if err := checkKeyID(out.KeyID); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	*h = out
	return nil
}

func checkKeyID(id string) error {
	if id == "" || len(id) > maxKeyID || !utf8.ValidString(id) {
		return fmt.Errorf("kid is not 1 to %d bytes of UTF-8", maxKeyID)
	}
	return nil
}

// Chain is the tip of a ledger's chain of heads. The next head is sealed on this tip and verified
// against it.
type Chain struct {
	ID   [16]byte
	Seq  uint64   // Seq of the last head; 0 before the first head
	Prev [32]byte // hash of the last head; zeros before the first head
}

// Next returns the tip after h. h must have been sealed on c.
func (c Chain) Next(h Head) Chain {
	return Chain{ID: c.ID, Seq: h.Seq, Prev: h.Hash()}
}

// check returns an error if h cannot follow c.
func (c Chain) check(h Head) error {
	switch {
	case h.Chain != c.ID:
		return fmt.Errorf("%w: head of chain %x, not %x", ErrChain, h.Chain, c.ID)
	case h.Seq != c.Seq+1:
		return fmt.Errorf("%w: head %d follows head %d", ErrChain, h.Seq, c.Seq)
	case h.Prev != c.Prev:
		return fmt.Errorf("%w: head %d does not carry the hash of head %d", ErrChain, h.Seq, c.Seq)
	}
	return nil
}

// ChainError says where a chain is broken.
type ChainError struct {
	Seq uint64 // the Seq that the failing head should have
	Err error  // ErrChain, ErrUnknownKey or ErrSignature
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("receipt: chain breaks at head %d: %v", e.Seq, e.Err)
}

// Unwrap returns Err.
func (e *ChainError) Unwrap() error { return e.Err }

// VerifyChain checks that heads continue the chain of a tip without a gap. A key of keys must have
// signed each head. To verify a whole chain, pass the tip Chain{ID: id}. To verify only the heads
// after a trusted head, pass the tip after the trusted head.
//
// VerifyChain returns the tip after the last valid head. The error is a *ChainError. VerifyChain
// cannot see that the end of a chain was cut off. So compare the tip with a head from elsewhere,
// such as the head of a receipt.
func VerifyChain(from Chain, heads iter.Seq[SignedHead], keys Keys) (Chain, error) {
	tip := from
	for h := range heads {
		err := tip.check(h.Head)
		if err == nil {
			err = h.Verify(keys)
		}
		if err != nil {
			return tip, &ChainError{Seq: tip.Seq + 1, Err: err}
		}
		tip = tip.Next(h.Head)
	}
	return tip, nil
}
