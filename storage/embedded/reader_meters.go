package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"writ/storage"
)

// meterTable is what meters must say, by the rows. A row that is removed has
// nothing but its id to tell its month by, which may be off by
// [storage.MaxSkew]: near the turn of a month it may be of either.
type meterTable map[meter]decided

// decided is how many decisions are of a month for sure, and how many may be.
type decided struct{ sure, either int64 }

func (t meterTable) add(org string, month storage.Month, sure, either int64) {
	m := meter{org, month}
	n := t[m]
	n.sure += sure
	n.either += either
	t[m] = n
}

// remove counts a row that retention has removed.
func (t meterTable) remove(org string, id uuid.UUID) {
	at := storage.IDTime(id)
	first, last := storage.MonthOf(at.Add(-storage.MaxSkew)), storage.MonthOf(at.Add(storage.MaxSkew))
	if first == last {
		t.add(org, first, 1, 0)
		return
	}
	t.add(org, first, 0, 1)
	t.add(org, last, 0, 1)
}

// meters holds every meter to t.
func (r *Reader) meters(ctx context.Context, t meterTable) error {
	prefix := key{byte(kindMeter)}
	err := r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		org, month, err := parseMeterKey(k)
		if err != nil || len(v) != 8 {
			return true, &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("a meter has a key of %d bytes and a value of %d", len(k), len(v))}
		}
		n, want := int64(binary.BigEndian.Uint64(v)), t[meter{org, month}]
		delete(t, meter{org, month})
		return false, want.holds(org, month, n)
	})
	if err != nil {
		return err
	}
	for m, want := range t {
		if err := want.holds(m.org, m.month, 0); err != nil {
			return err
		}
	}
	return nil
}

func (d decided) holds(org string, month storage.Month, n int64) error {
	if n >= d.sure && n <= d.sure+d.either {
		return nil
	}
	return &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("its meter of %d says %d, and %d decisions are of that month", month, n, d.sure)}
}
