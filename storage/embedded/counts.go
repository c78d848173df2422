package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// The counts of a value on a day are one key with 24 numbers:
//
//	'c' org counted-by(1) day(4) value    index.Sums, by hour
//
// A row is counted once its frame is written. Such counts, and the meters, are pending in memory until
// their segment is sealed or they are many. Each write that removes rows also subtracts them from the
// counts.

// negativeDay is the sign bit of a day. Keys have it inverted, so that they are in the order of days.
const negativeDay = 1 << 31

func (b key) count(org string, by storage.CountedBy, day storage.Day) key {
	b = append(b.org(kindCount, org), byte(by))
	return binary.BigEndian.AppendUint32(b, uint32(day)^negativeDay) //nolint:gosec // the bits stay the same
}

// count adds n to the counts of a record.
func (b *batch) count(r *storage.Record, n int64) {
	k := make(key, 0, 128) // for most keys
	r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
		k = k[:0].count(r.OrganizationID, by, day).text(value)
		b.sums(k)[hour] += n
	})
}

// sums returns the sums that are added to a key. Most keys have sums already, and looking those up allocates nothing.
func (b *batch) sums(k key) *index.Sums {
	if n := b.counts[string(k)]; n != nil {
		return n
	}
	if b.counts == nil {
		b.counts = make(map[string]*index.Sums)
	}
	n := new(index.Sums)
	b.counts[string(k)] = n
	return n
}

// mergeCounts adds the writes of b.counts, one for each key. It deletes a key whose numbers all become 0. Pebble adds
// keys faster that are in order.
func (s *Store) mergeCounts(b *batch) {
	for _, k := range slices.Sorted(maps.Keys(b.counts)) {
		n := b.counts[k]
		v := n.Value()
		switch {
		case len(v) == 0 || b.err != nil:
		case s.endsCounts(b, key(k), n):
			b.delete(key(k))
		case b.err == nil:
			b.err = b.b.Merge([]byte(k), v, nil)
		}
	}
	b.counts = nil
}

// endsCounts reports whether n makes all numbers of a key 0. A removal does that, so n has a negative number then.
func (s *Store) endsCounts(b *batch, k key, n *index.Sums) bool {
	if !slices.ContainsFunc(n[:], func(n int64) bool { return n < 0 }) {
		return false
	}
	v, err := s.get(k)
	if errors.Is(err, storage.ErrNotFound) {
		return false
	}
	sums := *n
	b.err = cmp.Or(err, sums.Add(v))
	return b.err == nil && sums == index.Sums{}
}

// pending has the meters and counts of the frames after the last kept one, up to frame.
type pending struct {
	mu     sync.Mutex
	frame  uint64
	meters map[meter]int64
	counts map[string]*index.Sums
}

// pendingKeys is how many keys may be pending. Writing so many takes 6 ms, in which commits wait. 1,600 organizations
// have so many, if each has one agent and one kind of action.
const pendingKeys = 1 << 13

// count counts the records of a frame that was appended. The caller holds s.commits.
func (p *pending) count(frame uint64, records []*storage.Record, ticks []tick) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frame = frame
	for _, t := range ticks {
		p.meters[t.meter] = t.stored
	}
	b := batch{counts: p.counts}
	for _, r := range records {
		b.count(r, 1)
	}
}

func (p *pending) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.meters) + len(p.counts)
}

func (p *pending) clear() {
	p.meters, p.counts = make(map[meter]int64), make(map[string]*index.Sums)
}

// keep moves what is pending to Pebble. The caller holds s.commits, or opens or closes the store.
func (s *Store) keep() error {
	if s.pending.frame <= s.kept {
		return s.health.Stopped()
	}
	if err := s.sync(); err != nil { // Pebble must not know of frames that a crash can lose
		return err
	}
	return s.keepWith(s.newBatch(), s.pending.frame, s.apply)
}

// keepWith adds to b what is pending, and writes it. Then Pebble has what follows from all frames up to
// the given one.
func (s *Store) keepWith(b *batch, frame uint64, write func(*batch) error) error {
	p := &s.pending
	p.mu.Lock() // a reader of counts must not find them both here and in Pebble
	defer p.mu.Unlock()
	for m, n := range p.meters {
		b.number(meterKey(m.org, m.month), n)
	}
	if b.counts == nil {
		b.counts = p.counts
	} else {
		for k, n := range p.counts {
			b.sums(key(k)).AddSums(n)
		}
	}
	b.number(keptKey, int64(frame)) //nolint:gosec // it counts
	b.set(markKey(headStream, frame), nil)
	if frame != s.kept {
		b.delete(markKey(headStream, s.kept))
	}
	err := write(b)
	if err == nil {
		s.kept = frame
		p.clear()
	}
	return err
}

// metered returns the value of a meter.
func (s *Store) metered(m meter) (int64, error) {
	s.pending.mu.Lock()
	n, found := s.pending.meters[m]
	s.pending.mu.Unlock()
	if found {
		return n, s.health.Stopped()
	}
	return s.count(meterKey(m.org, m.month))
}

// Counts implements storage.Counter.
func (s *Store) Counts(
	ctx context.Context, org string, by storage.CountedBy, from, to storage.Day, f func(storage.Count) error,
) (err error) {
	if err := cmp.Or(checkOrg(org), s.health.Stopped()); err != nil || from >= to {
		return err
	}
	lower, upper := key{}.count(org, by, from), key{}.count(org, by, to)
	tell := func(k []byte, sums *index.Sums) error {
		day := storage.Day(binary.BigEndian.Uint32(k[len(lower)-4:]) ^ negativeDay) //nolint:gosec // as count has it
		return f(storage.Count{Value: string(k[len(lower):]), Day: day, Hours: storage.Hours(*sums)})
	}
	here := make(map[string]index.Sums)
	s.pending.mu.Lock()
	for k, n := range s.pending.counts {
		if k >= string(lower) && k < string(upper) {
			here[k] = *n
		}
	}
	state := s.db.NewSnapshot()
	s.pending.mu.Unlock()
	defer func() { err = errors.Join(err, state.Close()) }()
	for k, n := range here {
		if err := tell([]byte(k), &n); err != nil {
			return err
		}
	}
	return s.scanIn(ctx, state, lower, upper, func(k, v []byte) (bool, error) {
		var sums index.Sums
		if err := sums.Add(v); err != nil {
			return true, fmt.Errorf("key %x: %w", k, err)
		}
		return false, tell(k, &sums)
	})
}
