package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"writ/storage"
)

// Meters implements storage.Usage. It reads the meters of all months, which are
// few: an organization has one a month.
func (s *Store) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	lower, upper := key{byte(kindMeter)}, key{byte(kindMeter) + 1}
	return s.scan(ctx, lower, upper, func(k, v []byte) (bool, error) {
		org, of, err := parseMeterKey(k)
		if err != nil || of != month {
			return false, err
		}
		if len(v) != 8 {
			return true, fmt.Errorf("decoding a stored meter of %d bytes", len(v))
		}
		return false, f(org, int64(binary.BigEndian.Uint64(v)))
	})
}

func parseMeterKey(k []byte) (org string, month storage.Month, err error) {
	if org, err = orgOf(k); err != nil {
		return "", 0, err
	}
	if rest := k[3+len(org):]; len(rest) == 4 {
		return org, storage.Month(binary.BigEndian.Uint32(rest)), nil
	}
	return "", 0, fmt.Errorf("decoding the key of a meter: %d bytes", len(k))
}
