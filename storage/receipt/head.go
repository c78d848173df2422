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
	// maxSafeInt is the largest integer n for which a JSON number can hold both n and n+1
	// exactly.
	maxSafeInt = 1<<53 - 1
	// maxKeyID bounds a key id in bytes; a thumbprint has 43.
	maxKeyID = 256
)

const (
	headDomain = "writ/head/v1\n"
	headLen    = len(headDomain) + 16 + 8 + 4 + 8 + sha256.Size + sha256.Size
)

// Head is the message that a ledger signs, once for each batch. It has the root of the
// batch's tree and the hash of the head before it. The package documentation describes
// its bytes.
type Head struct {
	Chain     [16]byte // the same for every head of one ledger
	Seq       uint64   // 1 for the first head, then one more for each
	Size      uint32   // leaves in the batch
	UnixMilli int64    // when it was signed, by the ledger's clock; need not increase
	Prev      [32]byte // hash of the head at Seq-1; zeros for the first
	Root      [32]byte // of the batch's tree
}

// Bytes returns the 113 bytes that are signed.
func (h Head) Bytes() []byte {
	return h.append(make([]byte, 0, headLen))
}

func (h Head) append(dst []byte) []byte {
	dst = h.appendShared(append(dst, headDomain...))
	return append(dst, h.Root[:]...)
}

// appendShared appends the fields that a head and a sig have in common: all but the root.
func (h Head) appendShared(dst []byte) []byte {
	dst = append(dst, h.Chain[:]...)
	dst = binary.BigEndian.AppendUint64(dst, h.Seq)
	dst = binary.BigEndian.AppendUint32(dst, h.Size)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.UnixMilli))
	return append(dst, h.Prev[:]...)
}

// readShared is the reverse of appendShared. It returns the bytes after these fields.
func (h *Head) readShared(b []byte) []byte {
	b = b[copy(h.Chain[:], b):]
	h.Seq, b = binary.BigEndian.Uint64(b), b[8:]
	h.Size, b = binary.BigEndian.Uint32(b), b[4:]
	h.UnixMilli, b = int64(binary.BigEndian.Uint64(b)), b[8:]
	return b[copy(h.Prev[:], b):]
}

// Hash returns SHA-256(0x02 || Bytes), which is Prev of the next head.
func (h Head) Hash() [32]byte {
	var buf [1 + headLen]byte
	return sha256.Sum256(h.append(append(buf[:0], headPrefix)))
}

// SignedHead is a head and its signature. It must not be trusted before Verify.
type SignedHead struct {
	Head
	KeyID string // names the key that verifies the signature; it is not signed itself
	Sig   [64]byte
}

// Verify returns nil if the head was signed by the key of keys that KeyID names.
// Otherwise the error is ErrUnknownKey or ErrSignature.
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

// MarshalBinary returns the form to store: head bytes, signature, key id.
func (h SignedHead) MarshalBinary() ([]byte, error) {
	if err := checkKeyID(h.KeyID); err != nil {
		return nil, fmt.Errorf("encoding head %d: %w", h.Seq, err)
	}
	dst := make([]byte, 0, headLen+len(h.Sig)+len(h.KeyID))
	dst = append(h.append(dst), h.Sig[:]...)
	return append(dst, h.KeyID...), nil
}

// UnmarshalBinary reads the form of MarshalBinary. An error is ErrMalformed. It verifies
// nothing.
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

// Chain is the tip of a ledger's chain of heads. It is enough to extend the chain, or to
// verify the heads that follow.
type Chain struct {
	ID   [16]byte
	Seq  uint64   // of the last head; 0 before the first
	Prev [32]byte // hash of the last head; zeros before the first
}

// Next returns the tip after h. The head h must have been sealed on c.
func (c Chain) Next(h Head) Chain {
	return Chain{ID: c.ID, Seq: h.Seq, Prev: h.Hash()}
}

// check returns an error if h can't follow c.
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

// ChainError is a break of a chain.
type ChainError struct {
	Seq uint64 // the number that the failing head should have had
	Err error  // is ErrChain, ErrUnknownKey or ErrSignature
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("receipt: chain breaks at head %d: %v", e.Seq, e.Err)
}

// Unwrap returns Err.
func (e *ChainError) Unwrap() error { return e.Err }

// VerifyChain checks that heads continue a chain whose tip is from, without a gap, and
// that a key of keys has signed each of them. To verify a whole chain, pass Chain{ID: id}
// as from. To verify only the heads that follow a trusted head, pass the tip after the
// trusted head.
//
// VerifyChain returns the tip after the last valid head. Its error is a *ChainError. A
// chain whose end was cut off verifies without an error. So compare the tip with a head
// from elsewhere, such as the head of a receipt.
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
