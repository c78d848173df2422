package embedded

import (
	"bytes"
	"context"
	"math"
	"time"

	"writ/storage"
)

// endKey is the key of t among its organization's tokens by when they expire.
func endKey(t *storage.Token) key {
	k := orgKey(kindTokenEnd, t.OrganizationID)
	if t.ExpiresAt.IsZero() {
		return append(k, bytes.Repeat([]byte{math.MaxUint8}, timeLen)...).text(t.ID) // after every time
	}
	return k.time(t.ExpiresAt).text(t.ID)
}

// CountTokens implements storage.Usage.
func (s *Store) CountTokens(ctx context.Context, org string, at time.Time) (int, error) {
	if err := checkOrg(org); err != nil {
		return 0, err
	}
	return s.usableTokens(ctx, org, at, math.MaxInt)
}

// usableTokens counts org's tokens that are usable at a time, up to most. It
// reads none that expired, of which there may be very many.
func (s *Store) usableTokens(ctx context.Context, org string, at time.Time, most int) (n int, err error) {
	all := orgKey(kindTokenEnd, org)
	lower := bytes.Clone(all)
	err = s.scan(ctx, key(lower).time(at).end(), all.end(), func(_, _ []byte) (bool, error) {
		n++
		return n >= most, nil
	})
	return n, err
}
