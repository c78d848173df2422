package embedded

import (
	"context"

	"writ/storage"
)

// meter names a meter.
type meter struct {
	org   string
	month storage.Month
}

// meterCache holds the stored values of the meters that were written last.
type meterCache map[meter]int64

// maxMeters bounds the cache, at about a megabyte.
const maxMeters = 10_000

// keep takes over meters that have been stored.
func (c meterCache) keep(meters map[meter]int64) {
	if len(c)+len(meters) > maxMeters {
		clear(c)
	}
	for m, n := range meters {
		c[m] = n
	}
}

// addMeters puts the meters into b as they are once fresh is counted, and
// returns them. commits is held.
func (s *Store) addMeters(b *batch, fresh []*storage.Record) (map[meter]int64, error) {
	meters := make(map[meter]int64, 1)
	for _, r := range fresh {
		m := meter{r.OrganizationID, storage.MonthOf(r.DecidedAt)}
		n, ok := meters[m]
		if !ok {
			n, ok = s.meters[m]
		}
		if !ok {
			var err error
			if n, err = s.count(meterKey(m.org, m.month)); err != nil {
				return nil, err
			}
		}
		meters[m] = n + 1
	}
	for m, n := range meters {
		b.number(meterKey(m.org, m.month), n)
	}
	return meters, nil
}

// Metered implements storage.Log.
func (s *Store) Metered(_ context.Context, org string, month storage.Month) (int64, error) {
	if err := checkOrg(org); err != nil {
		return 0, err
	}
	return s.count(meterKey(org, month))
}
