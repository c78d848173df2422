package receipt

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// The reasons why a receipt or a head is refused, for errors.Is.
var (
	// ErrMalformed means that the input is not a receipt or a head at all.
	ErrMalformed = errors.New("receipt: malformed")
	// ErrUnknownKey means that kid names none of the trusted keys.
	ErrUnknownKey = errors.New("receipt: unknown key")
	// ErrSignature means that the key did not sign this content, so it was forged or
	// changed.
	ErrSignature = errors.New("receipt: signature does not verify")
	// ErrExpired means that the receipt is genuine but too old to act upon.
	ErrExpired = errors.New("receipt: expired")
	// ErrPayload means that the receipt is of another decision.
	ErrPayload = errors.New("receipt: payload does not match")
	// ErrChain means that a head does not follow the one before it.
	ErrChain = errors.New("receipt: broken chain")
)

// Verify returns nil if r was signed by the key of keys that its kid names and has not
// expired at now. Otherwise the error is ErrMalformed, ErrUnknownKey, ErrSignature or
// ErrExpired, checked in this order. So a receipt that is refused with ErrExpired is
// otherwise valid. Verify needs no network and trusts only keys.
//
// It does not verify the content of the decision: see [VerifyPayload].
func Verify(r Receipt, keys Keys, now time.Time) error {
	h, err := r.SignedHead()
	if err != nil {
		return err
	}
	if err := h.Verify(keys); err != nil {
		return err
	}
	if now.Unix() >= r.Exp {
		return fmt.Errorf("%w: at %s", ErrExpired, time.Unix(r.Exp, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// VerifyPayload returns nil if r is the receipt of exactly p, and ErrPayload otherwise.
// It does not verify r's signature, without which the digest proves nothing.
func VerifyPayload(r Receipt, p Payload) error {
	switch {
	case r.Decision != p.Decision:
		return fmt.Errorf("%w: decision", ErrPayload)
	case r.DecisionID != p.DecisionID:
		return fmt.Errorf("%w: decision_id", ErrPayload)
	case r.Exp != p.Exp:
		return fmt.Errorf("%w: exp", ErrPayload)
	case !p.valid():
		return fmt.Errorf("%w: a string is not UTF-8 or an integer not safe", ErrPayload)
	case r.Digest != p.Digest():
		return fmt.Errorf("%w: digest", ErrPayload)
	}
	return nil
}

// valid reports whether the canonical form is unambiguous.
func (p Payload) valid() bool {
	all := append([]string{p.OrganizationID, p.IntentID, p.IntentDigest, p.PolicyID, p.Decision, p.DecisionID,
		p.ApprovalID}, p.Reasons...)
	return !slices.ContainsFunc(all, func(s string) bool {
		return !utf8.ValidString(s)
	}) && safe(p.Exp) && safe(p.PolicyVersion)
}

func safe(n int64) bool { return -maxSafeInt <= n && n <= maxSafeInt }
