package receipt

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	sigVersion = 1

	// sigBatchLen is the length of the beginning that all sigs of a batch share: the version, the
	// head without its root, and the signature. The leaf's index and proof follow.
	sigBatchLen = 1 + 16 + 8 + 4 + 8 + sha256.Size + ed25519.SignatureSize
	sigMinLen   = sigBatchLen + 4
	sigMaxLen   = sigMinLen + 32*sha256.Size // a tree of 2^32-1 leaves is 32 levels high

	sigMaxChars = (sigMaxLen*8 + 5) / 6
)

// sig is the decoded form of Receipt.Sig. It does not have the head's root and the key id.
type sig struct {
	head  SignedHead
	index uint32
	proof []hash
}

// encoding returns base64url without padding. Its decoder refuses unused bits that are not zero in
// the last character.
func encoding() *base64.Encoding { return base64.RawURLEncoding.Strict() }

// appendSigBatch appends the sigBatchLen bytes that all sigs of a batch share.
func appendSigBatch(dst []byte, h *SignedHead) []byte {
	dst = h.appendShared(append(dst, sigVersion))
	return append(dst, h.Sig[:]...)
}

// decodeSig decodes a sig. It accepts only the spelling that Seal writes.
func decodeSig(s string) (sig, error) {
	if len(s) > sigMaxChars {
		return sig{}, fmt.Errorf("%d characters", len(s))
	}
	// Even a strict decoder skips line breaks.
	if strings.ContainsAny(s, "\r\n") {
		return sig{}, errors.New("line break in base64url")
	}
	b, err := encoding().DecodeString(s)
	if err != nil {
		return sig{}, errors.New("not canonical base64url without padding")
	}
	if len(b) < sigMinLen || (len(b)-sigMinLen)%sha256.Size != 0 {
		return sig{}, fmt.Errorf("%d bytes", len(b))
	}
	if b[0] != sigVersion {
		return sig{}, fmt.Errorf("version %d", b[0])
	}
	var out sig
	b = out.head.readShared(b[1:])
	b = b[copy(out.head.Sig[:], b):]
	out.index, b = binary.BigEndian.Uint32(b), b[4:]
	for ; len(b) > 0; b = b[sha256.Size:] {
		out.proof = append(out.proof, hash(b))
	}
	return out, nil
}
