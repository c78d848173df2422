package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Signer seals batches with one Ed25519 key. It is immutable and safe for concurrent use. If a
// Signer is printed, the output has the key id, never the key.
type Signer struct {
	public ed25519.PublicKey
	kid    string
	sign   func(message []byte) ([]byte, error)
}

// ErrUnsigned means that a key that another program holds did not sign. Its program is silent, slow or wrong.
var ErrUnsigned = errors.New("the signer gave no signature")

// NewSigner returns a signer with a copy of priv. It panics, as ed25519.Sign does, if priv is not
// ed25519.PrivateKeySize bytes long. NewSigner derives the public half from the seed again.
// Signatures with a wrong public half would reveal the private key.
func NewSigner(priv ed25519.PrivateKey) *Signer {
	if len(priv) != ed25519.PrivateKeySize {
		panic(fmt.Sprintf("receipt: private key of %d bytes", len(priv)))
	}
	own := ed25519.NewKeyFromSeed(priv.Seed())
	return &Signer{publicHalf(own), KeyID(publicHalf(own)), func(message []byte) ([]byte, error) {
		return ed25519.Sign(own, message), nil
	}}
}

// NewRemoteSigner returns a signer whose private key another program holds. sign asks that program for a
// signature. It must end by itself. Seal verifies the signature before it uses it.
func NewRemoteSigner(public ed25519.PublicKey, sign func(message []byte) ([]byte, error)) (*Signer, error) {
	if err := checkPublic(public); err != nil {
		return nil, err
	}
	public = bytes.Clone(public)
	return &Signer{public, KeyID(public), func(message []byte) ([]byte, error) {
		sig, err := sign(message)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsigned, err)
		}
		if !ed25519.Verify(public, message, sig) {
			return nil, fmt.Errorf("%w: what it answers does not verify", ErrUnsigned)
		}
		return sig, nil
	}}, nil
}

func publicHalf(priv ed25519.PrivateKey) ed25519.PublicKey {
	return ed25519.PublicKey(priv[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
}

// KeyID returns the thumbprint of the public key. Set Receipt.KeyID to it before calling LeafHash.
func (s *Signer) KeyID() string { return s.kid }

// Public returns a copy of the public key.
func (s *Signer) Public() ed25519.PublicKey {
	return bytes.Clone(s.public)
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
// A key in memory never fails. The error of another one is [ErrUnsigned], and nothing is signed.
//
// Without leaves Seal signs the empty tree, whose root is SHA-256 of nothing. Seal panics for more
// than 2^32-1 leaves.
func (s *Signer) Seal(c Chain, at time.Time, leaves [][32]byte) (SignedHead, []string, error) {
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
	sig, err := s.sign(h.append(buf[:0]))
	if err != nil {
		return SignedHead{}, nil, err
	}
	copy(h.Sig[:], sig)
	return h, sigs(&h, t), nil
}

// probe is what Try has signed. It is no head: a head is longer.
const probe = "writ asks whether its signer signs"

// Try has the key sign a text that is no head, and returns the error that Seal would.
func (s *Signer) Try() error {
	_, err := s.sign([]byte(probe))
	return err
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
