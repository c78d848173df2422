package receipt

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Verify and other functions return these reasons for a refusal. Compare with errors.Is.
var (
	// ErrMalformed means that the input is not a receipt or a head.
	ErrMalformed = errors.New("receipt: malformed")
	// ErrUnknownKey means that no trusted key has the kid.
	ErrUnknownKey = errors.New("receipt: unknown key")
	// ErrSignature means that the key did not sign this content. The content was forged or changed.
	ErrSignature = errors.New("receipt: signature does not verify")
	// ErrExpired means that the receipt is genuine but expired.
	ErrExpired = errors.New("receipt: expired")
	// ErrPayload means that the receipt belongs to another decision.
	ErrPayload = errors.New("receipt: payload does not match")
	// ErrChain means that a head does not follow the previous head.
	ErrChain = errors.New("receipt: broken chain")
)

// Verify returns nil if the key of keys that r's kid names has signed r, and r has not expired at
// now. Otherwise the error is ErrMalformed, ErrUnknownKey, ErrSignature or ErrExpired, checked in
// this order. So a receipt with ErrExpired is otherwise valid. Verify needs no network and trusts
// only keys.
//
// Verify does not compare the receipt with the content of the decision: see [VerifyPayload].
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

// VerifyPayload returns nil if r is the receipt of exactly p, and ErrPayload otherwise. It does not
// verify r's signature. Without a valid signature the digest proves nothing.
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

// valid reports whether the payload has only one canonical form.
func (p Payload) valid() bool {
	all := append([]string{p.OrganizationID, p.IntentID, p.IntentDigest, p.PolicyID, p.Decision, p.DecisionID,
		p.ApprovalID}, p.Reasons...)
	return !slices.ContainsFunc(all, func(s string) bool {
		return !utf8.ValidString(s)
	}) && safe(p.Exp) && safe(p.PolicyVersion)
}

func safe(n int64) bool { return -maxSafeInt <= n && n <= maxSafeInt }
