package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
func (b *batch) count(r *storage.Record, n int64) { b.countAs(alikeAs(r), n) }

// countAs adds n to the counts of the records of a.
func (b *batch) countAs(a alike, n int64) {
	k := make(key, 0, 128) // for most keys
	for i, by := range storage.CountedByAll {
		if value := a.values[i]; value != "" {
			k = k[:0].count(a.org, by, a.day).text(value)
			b.sums(k)[a.hour] += n
		}
	}
}

// alike says how some records are counted, each in the same way. Most records of an organization are alike.
type alike struct {
	org    string
	day    storage.Day
	hour   int
	values [len(storage.CountedByAll)]string // empty if a record has none
}

func alikeAs(r *storage.Record) alike {
	a := alike{org: r.OrganizationID}
	r.Counted(func(by storage.CountedBy, value string, day storage.Day, hour int) {
		a.day, a.hour = day, hour
		a.values[slices.Index(storage.CountedByAll[:], by)] = value
	})
	return a
}

// own returns a copy of a, whose texts may be parts of large ones. The texts of the copy are parts of one text, so that
// a look-up reads one piece of memory.
func (a alike) own() alike {
	text := a.org + strings.Join(a.values[:], "")
	cut := func(s *string) { *s, text = text[:len(*s)], text[len(*s):] }
	cut(&a.org)
	for i := range a.values {
		cut(&a.values[i])
	}
	return a
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
	mu      sync.Mutex
	frame   uint64
	meters  map[meter]int64
	records map[alike]*int64
}

// pendingKeys is how many keys the pending ones may have. Writing so many takes 6 ms, in which commits wait. 1,300
// organizations have so many, if the records of each are alike.
const pendingKeys = 1 << 13

// count counts the records of a frame that was appended. The caller holds s.commits.
func (p *pending) count(frame uint64, records []*storage.Record, ticks []tick) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frame = frame
	for _, t := range ticks {
		p.meters[t.meter] = t.stored
	}
	for _, r := range records {
		a := alikeAs(r)
		n := p.records[a]
		if n == nil {
			n = new(int64)
			p.records[a.own()] = n
		}
		*n++
	}
}

// len returns how many keys p has at most.
func (p *pending) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.meters) + len(storage.CountedByAll)*len(p.records)
}

func (p *pending) clear() {
	p.meters, p.records = make(map[meter]int64), make(map[alike]*int64)
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
	for a, n := range p.records {
		b.countAs(a, *n)
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
	var here []storage.Count
	i := slices.Index(storage.CountedByAll[:], by)
	s.pending.mu.Lock()
	for a, n := range s.pending.records {
		if i >= 0 && a.org == org && a.day >= from && a.day < to && a.values[i] != "" {
			c := storage.Count{Value: a.values[i], Day: a.day}
			c.Hours[a.hour] = *n
			here = append(here, c)
		}
	}
	state := s.db.NewSnapshot()
	s.pending.mu.Unlock()
	defer func() { err = errors.Join(err, state.Close()) }()
	for _, c := range here {
		if err := f(c); err != nil {
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
