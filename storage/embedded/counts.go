package embedded

import (
	"context"
	"encoding/binary"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// The counts of a value on a day are one key with 24 numbers:
//
//	'c' org counted-by(1) day(4) value    index.Sums, by hour
//
// A row is counted in the write that adds the other keys of its frame. Each write that removes rows from
// Pebble also subtracts them from the counts.

// negativeDay is the sign bit of a day. Keys have it inverted, so that they are in the order of days.
const negativeDay = 1 << 31

func (b key) count(org string, by storage.CountedBy, day storage.Day) key {
	b = append(b.org(kindCount, org), byte(by))
	return binary.BigEndian.AppendUint32(b, uint32(day)^negativeDay) //nolint:gosec // the bits stay the same
}

// counts counts a record.
func (k *frameKeys) counts(r *storage.Record) {
	r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
		k.End(k.key().count(r.OrganizationID, by, day).text(value))
		k.End(index.AppendSum(k.Buf, hour, 1))
	})
}

// count adds n to the counts of a record.
func (b *batch) count(r *storage.Record, n int64) {
	r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
		k := string(key{}.count(r.OrganizationID, by, day).text(value))
		if b.counts[k] == nil {
			if b.counts == nil {
				b.counts = make(map[string]*index.Sums)
			}
			b.counts[k] = new(index.Sums)
		}
		b.counts[k][hour] += n
	})
}

// mergeCounts adds the writes of b.counts, one for each key.
func (b *batch) mergeCounts() {
	for k, n := range b.counts {
		if v := n.Value(); len(v) > 0 && b.err == nil {
			b.err = b.b.Merge([]byte(k), v, nil)
		}
	}
	b.counts = nil
}

// recount adds writes to b that replace all counts in Pebble. The new counts cover the rows in Pebble that
// are in frames up to last.
func (s *Store) recount(b *batch, last uint64) error {
	b.deleteRange(key{byte(kindCount)}, key{byte(kindCount) + 1})
	return s.scanKind(context.Background(), kindRecord, func(org string, rest, v []byte) error {
		id, settlement, err := parsePosition(rest)
		if err != nil || settlement {
			return err
		}
		r, err := s.counted(org, id, v, last)
		if r != nil {
			b.count(r, 1)
		}
		return err
	})
}

// counted reads the record at the location v. It returns nil if the record is in a frame after last.
func (s *Store) counted(org string, id uuid.UUID, v []byte, last uint64) (*storage.Record, error) {
	at, err := parseLocation(v)
	if err != nil || at.frame > last {
		return nil, err
	}
	return s.readRow(org, id, v, nil, nil)
}

// Counts implements storage.Counter.
func (s *Store) Counts(
	ctx context.Context, org string, by storage.CountedBy, from, to storage.Day, f func(storage.Count) error,
) error {
	if err := checkOrg(org); err != nil || from >= to {
		return err
	}
	lower, upper := key{}.count(org, by, from), key{}.count(org, by, to)
	return s.index.Counts(ctx, lower, upper, func(k []byte, sums *index.Sums) error {
		day := storage.Day(binary.BigEndian.Uint32(k[len(lower)-4:]) ^ negativeDay) //nolint:gosec // as count has it
		return f(storage.Count{Value: string(k[len(lower):]), Day: day, Hours: storage.Hours(*sums)})
	})
}
