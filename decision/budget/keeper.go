package budget

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/pace"
	"writ.example/writ/storage"
)

// keeper keeps the counts of windows in a journal, as its commits change them. So a window is known at once after a
// start, and one that was dropped from memory is read with a few look-ups. The keeper follows the commits of the
// journal, a little behind. Its values have the keys
//
//	'r' run(8)                             the position that the run has followed: 8 bytes
//	's' SHA-256 of a series                id(8) run(8) position(8)
//	'd' id(8)                              part(8) block(8): see the fields from and last of kept
//	'w' id(8) block(8) SHA-256 of a subject(16)  *(uvarint(part) varint(n))
//
// A run is one life of a process. The windows of a series have the commits up to its position, or to the position
// of its run if that is greater. No process is run 0. A block has [blockParts] parts of a window. The parts in a
// value are numbered within their block.
type keeper struct {
	journal storage.Journal
	run     uint64
	early   int // fillEarly; less in tests

	// mu is held while the keeper follows, which takes about as long as the commits that it reads have taken. It
	// guards the fields below.
	mu       sync.Mutex
	at       uint64 // the position up to which the followed series are kept
	followed map[string]map[seriesKey]*kept
}

// kept is a series that is kept.
type kept struct {
	counter *condition.Counter
	id      [8]byte
	// The series has all parts from one on. Older ones were dropped, or are from before it was filled. last is the
	// last block.
	from, last atomic.Int64
	// old is the block before which the last writes needed none, and writes is their number.
	old    int64
	writes int
	// idle is set when the series is not in memory any more.
	idle atomic.Bool
}

const (
	// blockParts is how many parts of a window are in a value. A window has parts in two blocks or three.
	blockParts = 64
	// followAtOnce is how many commits are followed in one write. After a crash so many are followed again, with
	// the commits of followEvery.
	followAtOnce = 1024
	followEvery  = time.Second
	// readAtOnce is how many blocks are read of a window. There are more than three if a clock was ahead.
	readAtOnce = 64
	// dropAfter is how many writes must agree that a block is old. A clock that is ahead for a while drops nothing.
	dropAfter = 64
	// fillAtOnce is how many windows a fill collects in memory.
	fillAtOnce = 1 << 16
)

func newKeeper(j storage.Journal) *keeper {
	if j == nil {
		return nil
	}
	var run [8]byte
	rand.Read(run[:])
	return &keeper{
		journal: j, run: binary.BigEndian.Uint64(run[:]), early: fillEarly,
		followed: make(map[string]map[seriesKey]*kept),
	}
}

func runKey(run uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'r'}, run) }

func headerKey(s seriesKey) []byte {
	text := binary.BigEndian.AppendUint64(nil, uint64(s.revision)) //nolint:gosec // the bits stay the same
	text = binary.BigEndian.AppendUint64(text, uint64(len(s.org)))
	sum := sha256.Sum256(append(append(text, s.org...), s.counter...))
	return append([]byte{'s'}, sum[:]...)
}

// covers reports whether the series has all parts from one on. s may be nil.
func (s *kept) covers(part int64) bool { return s != nil && s.from.Load() <= part }

func (s *kept) boundsKey() []byte { return append([]byte{'d'}, s.id[:]...) }

// setBounds sets the bounds of the series in a derivation. last is the last block.
func (s *kept) setBounds(set map[string][]byte, last int64) {
	v := binary.BigEndian.AppendUint64(nil, uint64(s.from.Load())) //nolint:gosec // the bits stay
	v = binary.BigEndian.AppendUint64(v, uint64(last))             //nolint:gosec // it is not negative
	set[string(s.boundsKey())] = v
}

// allOf returns the ranges of all keys of a series with an id.
func allOf(id []byte) [][2]string {
	w, d := "w"+string(id), "d"+string(id)
	return [][2]string{{w, w + "\xff"}, {d, d + "\x00"}}
}

func (s *kept) blockKey(block int64) []byte {
	k := append([]byte{'w'}, s.id[:]...)
	return binary.BigEndian.AppendUint64(k, uint64(max(0, block))) //nolint:gosec // it is not negative
}

func (s *kept) key(block int64, of string) []byte {
	sum := sha256.Sum256([]byte(of))
	return append(s.blockKey(block), sum[:16]...)
}

// blockOf returns the block of a part. Parts before 1970 are in the first block.
func blockOf(part int64) int64 { return max(0, part) / blockParts }

// parts adds the parts of a value to w.
func addParts(w *window, block int64, v []byte) error {
	for len(v) > 0 {
		part, n := binary.Uvarint(v)
		if n <= 0 || part >= blockParts {
			return errParts
		}
		v = v[n:]
		sum, n := binary.Varint(v)
		if n <= 0 {
			return errParts
		}
		v = v[n:]
		w.add(block*blockParts+int64(part), sum) //nolint:gosec // it is small
	}
	return nil
}

var errParts = fmt.Errorf("the parts of a window are %w", storage.ErrCorrupt)

func appendParts(v []byte, parts []storage.WindowPart) []byte {
	for _, p := range parts {
		v = binary.AppendUvarint(v, uint64(max(0, p.At)%blockParts)) //nolint:gosec // see blockOf
		v = binary.AppendVarint(v, p.N)
	}
	return v
}

// read reads into w what the series has for the subjects of, around a part. The keeper must have followed every commit
// that counts for them.
func (k *keeper) read(s *kept, of []string, now int64, w *window) error {
	begin, latest := blockOf(first(now)-behind), s.last.Load()
	end := min(latest, begin+readAtOnce)
	for block := begin; block <= end; block++ {
		for _, of := range of {
			v, err := k.journal.Derived(s.key(block, of))
			if err == nil {
				err = addParts(w, block, v)
			}
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				return err
			}
		}
	}
	// Blocks are dropped only after from is set.
	if w.from, w.to = math.MinInt64, math.MaxInt64; begin > 0 {
		w.from = begin * blockParts
	}
	w.from = max(w.from, s.from.Load())
	if latest > end { // a clock was far ahead
		w.to = (end+1)*blockParts - 1
	}
	return nil
}

// deltas are what commits change, by series and subject.
type deltas map[*kept]map[string]*window

func (d deltas) add(s *kept, row *storage.Record, n int64) {
	of := subject(s.counter, row.AgentID, row.SessionID)
	if d[s] == nil {
		d[s] = make(map[string]*window)
	}
	w := d[s][of]
	if w == nil {
		w = new(window)
		d[s][of] = w
	}
	w.add(bucketAt(s.counter, row.DecidedAt), n)
}

// write adds deltas to the values of the journal. It also sets values. If drop is set, it drops what has become old.
func (k *keeper) write(ctx context.Context, d deltas, set map[string][]byte, drop bool) error {
	change := storage.Derivation{Set: set}
	ends := make(map[*kept]int64) // the last block of each series
	for s, windows := range d {
		last := int64(0)
		for of, w := range windows {
			for len(w.parts) > 0 {
				block := blockOf(w.parts[0].At)
				n := slices.IndexFunc(w.parts, func(p storage.WindowPart) bool { return blockOf(p.At) != block })
				if n < 0 {
					n = len(w.parts)
				}
				if err := k.merge(change.Set, s.key(block, of), block, w.parts[:n]); err != nil {
					return err
				}
				w.parts, last = w.parts[n:], max(last, block)
			}
		}
		ends[s] = max(last, s.last.Load())
		s.setBounds(set, ends[s])
		if drop {
			s.drop(last-3, ends[s], &change) // a clock that is a window behind still finds all
		}
	}
	if err := k.journal.Derive(ctx, change); err != nil {
		return err // the next write must set the last block again
	}
	for s, last := range ends {
		s.last.Store(last)
	}
	return nil
}

// drop drops the blocks before one, if the last writes did not need them. last is the last block.
func (s *kept) drop(old, last int64, change *storage.Derivation) {
	if s.writes == 0 || old < s.old {
		s.old = old
	}
	if s.writes++; s.writes < dropAfter {
		return
	}
	s.writes = 0
	if from := s.old * blockParts; from > s.from.Load() {
		s.from.Store(from)
		s.setBounds(change.Set, last)
		change.Drop = append(change.Drop, [2]string{string(s.blockKey(0)), string(s.blockKey(s.old))})
	}
}

func (k *keeper) merge(set map[string][]byte, key []byte, block int64, parts []storage.WindowPart) error {
	var w window
	v, err := k.journal.Derived(key)
	if err == nil {
		err = addParts(&w, block, v)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	for _, p := range parts {
		w.add(block*blockParts+max(0, p.At)%blockParts, p.N)
	}
	set[string(key)] = appendParts(nil, w.parts)
	return nil
}

// follow follows the commits up to the last one.
func (k *keeper) follow(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.leaveLocked(ctx), k.followLocked(ctx))
}

func (k *keeper) followLocked(ctx context.Context) error {
	end, err := k.journal.Position(ctx)
	if err != nil {
		return err
	}
	if len(k.followed) == 0 {
		k.at = end
		return nil
	}
	return k.commits(ctx, &k.at, end, k.followed, func(at uint64, set map[string][]byte) {
		set[string(runKey(k.run))] = binary.BigEndian.AppendUint64(nil, at)
	})
}

// commits adds to series what the commits after *at change, up to end. mark sets the values that say how far
// the series are kept.
func (k *keeper) commits(
	ctx context.Context, at *uint64, end uint64, of map[string]map[seriesKey]*kept,
	mark func(at uint64, set map[string][]byte),
) error {
	for *at < end {
		upTo, d := min(end, *at+followAtOnce), make(deltas)
		err := k.journal.Since(ctx, *at, upTo, func(org string) bool { return of[org] != nil },
			func(row *storage.Record, wasSettled bool) {
				for _, s := range of[row.OrganizationID] {
					amount, ok := intentOf(row).Counted(s.counter)
					if wasSettled {
						amount = settled(s.counter, row.Settlement, amount)
					}
					if ok && amount != 0 {
						d.add(s, row, amount)
					}
				}
			})
		if err != nil {
			return err
		}
		set := make(map[string][]byte)
		mark(upTo, set)
		if err := k.write(ctx, d, set, true); err != nil {
			return err
		}
		*at = upTo
	}
	return nil
}

// open returns a series that has all parts from one on, as of now. If the journal has not kept them, open fills the
// series from the rows.
func (k *keeper) open(
	ctx context.Context, of seriesKey, c *condition.Counter, part int64, f *filling,
) (*kept, error) {
	s, err := k.resume(ctx, of, c, part)
	if s != nil || err != nil {
		return s, err
	}
	s = &kept{counter: c}
	rand.Read(s.id[:])
	s.from.Store(bucketAt(c, f.since) + 1)
	at, err := k.journal.Position(ctx)
	if err == nil {
		err = k.fill(ctx, of.org, s, at, f)
	}
	if err == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		err = k.joinLocked(ctx, of, s, at)
	}
	if err != nil {
		gone := storage.Derivation{Drop: allOf(s.id[:])}
		return nil, errors.Join(err, k.journal.Derive(context.WithoutCancel(ctx), gone))
	}
	return s, nil
}

// resume returns a series that the journal has kept with all parts from one on, or nil.
func (k *keeper) resume(ctx context.Context, of seriesKey, c *condition.Counter, part int64) (*kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.followed[of.org][of]; s != nil {
		if !s.covers(part) {
			return nil, nil
		}
		s.idle.Store(false)
		return s, k.followLocked(ctx)
	}
	v, err := k.journal.Derived(headerKey(of))
	if errors.Is(err, storage.ErrNotFound) || err == nil && len(v) != 24 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s, at := &kept{counter: c}, binary.BigEndian.Uint64(v[16:])
	copy(s.id[:], v)
	bounds, err := k.journal.Derived(s.boundsKey())
	if errors.Is(err, storage.ErrNotFound) || err == nil && len(bounds) != 16 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.from.Store(int64(binary.BigEndian.Uint64(bounds)))     //nolint:gosec // see setBounds
	s.last.Store(int64(binary.BigEndian.Uint64(bounds[8:]))) //nolint:gosec // see setBounds
	if !s.covers(part) {
		return nil, nil
	}
	v, err = k.journal.Derived(runKey(binary.BigEndian.Uint64(v[8:])))
	switch {
	case err == nil && len(v) == 8:
		at = max(at, binary.BigEndian.Uint64(v))
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return nil, err
	}
	if err = k.joinLocked(ctx, of, s, at); errors.Is(err, storage.ErrConflict) {
		return nil, nil
	}
	return s, err
}

// filling is how a series is filled from the rows since a time, for a decision at a time.
type filling struct {
	since, at, began time.Time
	wait             func(until time.Time) // says that a fill takes long, until about a time
	rows, early      int
	last             time.Time // when the last row was decided
	pace             pace.Pace
}

// fillEarly is how many rows a fill reads while decisions wait for it. It takes some 150 ms. After that they are
// decided without the counter, and the fill takes at most half of a processor.
const fillEarly = 10_000

// yield ends a slice.
func (f *filling) yield() {
	if f.rows < f.early {
		return
	}
	now := time.Now()
	part := min(max(f.last.Sub(f.since).Seconds()/max(1, f.at.Sub(f.since).Seconds()), 0.001), 1)
	f.wait(f.began.Add(time.Duration(float64(now.Sub(f.began)) / part)))
	f.pace.Rest(1, nil)
}

// fill keeps the counts of the rows that were committed up to a position.
func (k *keeper) fill(ctx context.Context, org string, s *kept, upTo uint64, f *filling) error {
	d := make(deltas)
	err := k.journal.Allowed(ctx, org, f.since, upTo, f.yield, func(row *storage.Record) (err error) {
		f.rows++
		f.last = row.DecidedAt
		if amount, ok := counted(s.counter, row); ok {
			d.add(s, row, amount)
		}
		if len(d[s]) >= fillAtOnce {
			err = k.write(ctx, d, make(map[string][]byte), false)
			clear(d)
		}
		return err
	})
	if err != nil {
		return err
	}
	set := make(map[string][]byte)
	s.setBounds(set, s.last.Load())
	return k.write(ctx, d, set, false)
}

// joinLocked follows a series that is kept up to a position.
func (k *keeper) joinLocked(ctx context.Context, of seriesKey, s *kept, at uint64) error {
	if err := k.followLocked(ctx); err != nil {
		return err
	}
	if at > k.at {
		return fmt.Errorf("a window is kept up to commit %d of %d: %w", at, k.at, storage.ErrConflict)
	}
	var change storage.Derivation
	header := headerKey(of)
	switch v, err := k.journal.Derived(header); {
	case err == nil && len(v) == 24 && !bytes.HasPrefix(v, s.id[:]):
		change.Drop = append(allOf(v[:8]), [2]string{string(header), string(header) + "\x00"})
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	}
	if old := k.followed[of.org][of]; old != nil {
		old.from.Store(math.MaxInt64) // nobody reads it any more
		delete(k.followed[of.org], of)
	}
	if err := k.journal.Derive(ctx, change); err != nil {
		return err
	}
	mark := func(run, at uint64, set map[string][]byte) {
		v := binary.BigEndian.AppendUint64(s.id[:len(s.id):len(s.id)], run)
		set[string(header)] = binary.BigEndian.AppendUint64(v, at)
	}
	alone := map[string]map[seriesKey]*kept{of.org: {of: s}}
	if err := k.commits(ctx, &at, k.at, alone, func(at uint64, set map[string][]byte) {
		mark(0, at, set) // the position of this run is greater, and the caller may give up
	}); err != nil {
		return err
	}
	set := make(map[string][]byte)
	mark(k.run, k.at, set)
	if err := k.journal.Derive(ctx, storage.Derivation{Set: set}); err != nil {
		return err
	}
	if k.followed[of.org] == nil {
		k.followed[of.org] = make(map[seriesKey]*kept)
	}
	k.followed[of.org][of] = s
	return nil
}

// leaveLocked drops the series that no intent is counted in any more.
func (k *keeper) leaveLocked(ctx context.Context) error {
	var gone storage.Derivation
	var idle []seriesKey
	for _, all := range k.followed {
		for of, s := range all {
			if s.idle.Load() {
				header := string(headerKey(of))
				gone.Drop = append(append(gone.Drop, allOf(s.id[:])...), [2]string{header, header + "\x00"})
				idle = append(idle, of)
			}
		}
	}
	if len(idle) == 0 {
		return nil
	}
	if err := k.journal.Derive(ctx, gone); err != nil {
		return err // they are followed until their headers are gone, which say that they are
	}
	for _, of := range idle {
		if delete(k.followed[of.org], of); len(k.followed[of.org]) == 0 {
			delete(k.followed, of.org)
		}
	}
	return nil
}

// Run gives idle places back to the store until ctx ends. Then it gives back all places. Or it keeps
// windows as the commits change them.
func (k *Counters) Run(ctx context.Context) {
	switch {
	case k.cfg.Windows != nil:
		k.leases.Run(ctx, func() {})
	case k.keeper != nil:
		k.keeper.runUntil(ctx, func() {
			k.leases.Lock()
			k.stop()
			k.leases.Unlock()
			k.opens.Wait()
		})
	}
}

// runUntil follows commits until ctx ends. Then it calls stop, and follows them for the last time.
func (k *keeper) runUntil(ctx context.Context, stop func()) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.follow(ctx) //nolint:errcheck // the next one tries again, and a read that needs it gets its error
		case <-ctx.Done():
			stop()
			k.follow(context.WithoutCancel(ctx)) //nolint:errcheck // the next start follows what is missing
			return
		}
	}
}
