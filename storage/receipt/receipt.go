package receipt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// These are the values of Receipt.Decision.
const (
	Allow            = "allow"
	Deny             = "deny"
	ApprovalRequired = "approval_required"
)

// Receipt is the signed outcome of one evaluation. The JSON members have the order of the fields.
// Do not trust a Receipt before [Verify].
type Receipt struct {
	Decision   string `json:"decision"` // Allow, Deny or ApprovalRequired
	DecisionID string `json:"decision_id"`
	Digest     string `json:"digest"` // Payload.Digest of the decision
	Exp        int64  `json:"exp"`    // unix seconds; from this second on the receipt is expired
	Sig        string `json:"sig"`    // see the package documentation
	KeyID      string `json:"kid"`    // the id of the key that signed, never the key itself
}

// AppendLeaf appends the canonical JSON of all members except sig. The signature covers this JSON.
// It does not allocate when dst has room.
func (r *Receipt) AppendLeaf(dst []byte) []byte {
	dst = AppendMember(dst, `{"decision":`, r.Decision)
	dst = AppendMember(dst, `,"decision_id":`, r.DecisionID)
	dst = AppendMember(dst, `,"digest":`, r.Digest)
	dst = AppendInt(append(dst, `,"exp":`...), r.Exp)
	dst = AppendMember(dst, `,"kid":`, r.KeyID)
	return append(dst, '}')
}

// LeafHash returns SHA-256(0x00 || leaf) for [Signer.Seal]. Set KeyID to the signer's KeyID before.
func (r *Receipt) LeafHash() [32]byte {
	var buf [512]byte
	return sha256.Sum256(r.AppendLeaf(append(buf[:0], leafPrefix)))
}

// SignedHead returns the head that the receipt's sig claims. It computes the root from the
// receipt's leaf and proof. The head can then be looked up in the ledger's chain. An error is
// ErrMalformed. The claim must be verified, by [Verify] or [SignedHead.Verify].
func (r *Receipt) SignedHead() (SignedHead, error) {
	if err := r.check(); err != nil {
		return SignedHead{}, err
	}
	h, _, err := headOver(r.LeafHash(), r.Sig, r.KeyID)
	return h, err
}

// check returns ErrMalformed for members that no signer writes, such as invalid UTF-8. AppendString
// is unambiguous for valid UTF-8. So two receipts that pass have different leaves if any member
// other than sig differs.
func (r *Receipt) check() error {
	var err error
	switch {
	case r.Decision != Allow && r.Decision != Deny && r.Decision != ApprovalRequired:
		err = fmt.Errorf("decision %.32q", r.Decision)
	case r.DecisionID == "" || !utf8.ValidString(r.DecisionID):
		err = errors.New("decision_id is empty or not UTF-8")
	case !validDigest(r.Digest):
		err = errors.New("digest is not sha256: and 64 lower-case hex digits")
	case r.Exp < 0 || r.Exp > maxSafeInt:
		err = fmt.Errorf("exp %d is out of range", r.Exp)
	default:
		err = checkKeyID(r.KeyID)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

func validDigest(s string) bool {
	if len(s) != DigestLen || !strings.HasPrefix(s, digestPrefix) {
		return false
	}
	return strings.Trim(s[len(digestPrefix):], lowerHex) == ""
}
