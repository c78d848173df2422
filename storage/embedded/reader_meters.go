package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"writ/storage"
)

// meterTable has the meters that follow from the rows. The month of a removed row is known
// only by its id, whose time may be off by [storage.MaxSkew]: near the end of a month the
// row may belong to either month.
type meterTable map[meter]decided

// decided counts the decisions that belong to a month and those that may.
type decided struct{ certain, possible int64 }

func (t meterTable) add(org string, month storage.Month, certain, possible int64) {
	m := meter{org, month}
	n := t[m]
	n.certain += certain
	n.possible += possible
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

// meters compares every meter with t.
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
	if n >= d.certain && n <= d.certain+d.possible {
		return nil
	}
	return &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("its meter of %d says %d, and %d decisions are of that month", month, n, d.certain)}
}
