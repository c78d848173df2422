package budget

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// keeper keeps the counts of windows in a journal, as its commits change them. So a window is known at once after a
// start, and one that was dropped from memory is read with a few look-ups. The keeper follows the commits of the
// journal, a little behind. Its values have the keys
//
//	'r' run(8)                             the position that the run has followed: 8 bytes
//	's' SHA-256 of a series                id(8) run(8) position(8)
//	'w' id(8) block(8) SHA-256 of a subject(16)  *(uvarint(part) varint(n))
//
// A run is one life of a process. The windows of a series are those of the commits up to its position, or to the
// position of its run if that is greater. A block has [blockParts] parts of a window. The parts in a value are
// numbered within their block.
type keeper struct {
	journal storage.Journal
	run     uint64

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
	dropped int64 // blocks before it were dropped
	// idle is set when the series is not in memory any more.
	idle atomic.Bool
}

const (
	// blockParts is how many parts of a window are in a value. A window has parts in two blocks or three.
	blockParts = 64
	// followAtOnce is how many commits are followed in one write. After a crash so many are followed again, with
	// those of followEvery.
	followAtOnce = 1024
	followEvery  = time.Second
	// fillAtOnce is how many windows a fill collects in memory.
	fillAtOnce = 1 << 16
)

func newKeeper(j storage.Journal) *keeper {
	if j == nil {
		return nil
	}
	var run [8]byte
	rand.Read(run[:])
	return &keeper{journal: j, run: binary.BigEndian.Uint64(run[:]), followed: make(map[string]map[seriesKey]*kept)}
}

func runKey(run uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'r'}, run) }

func headerKey(s seriesKey) []byte {
	text := binary.BigEndian.AppendUint64(nil, uint64(s.revision)) //nolint:gosec // the bits stay the same
	text = binary.BigEndian.AppendUint64(text, uint64(len(s.org)))
	sum := sha256.Sum256(append(append(text, s.org...), s.counter...))
	return append([]byte{'s'}, sum[:]...)
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

// read adds to w what the series has for a subject around a part. The keeper must have followed every commit that
// counts for the subject.
func (k *keeper) read(s *kept, of string, now int64, w *window) error {
	for block := blockOf(now - condition.Buckets); block <= blockOf(now+condition.Buckets); block++ {
		v, err := k.journal.Derived(s.key(block, of))
		if err == nil {
			err = addParts(w, block, v)
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
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

// write adds deltas to the values of the journal. It also sets values.
func (k *keeper) write(ctx context.Context, d deltas, set map[string][]byte) error {
	change := storage.Derivation{Set: set}
	for s, windows := range d {
		last := s.dropped
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
		if first := last - 3; first > s.dropped { // a clock that is a window behind still finds all
			change.Drop = append(change.Drop, [2]string{string(s.blockKey(0)), string(s.blockKey(first))})
			s.dropped = first
		}
	}
	return k.journal.Derive(ctx, change)
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
		if err := k.write(ctx, d, set); err != nil {
			return err
		}
		*at = upTo
	}
	return nil
}

// open returns a series whose counts are kept as of now. If the journal has not kept it, open fills it from
// the rows since from, and offers the turn to others meanwhile. Nothing may be counted in the series before open
// returns.
func (k *keeper) open(
	ctx context.Context, of seriesKey, c *condition.Counter, from time.Time, turn condition.Turn,
) (*kept, error) {
	s, err := k.resume(ctx, of, c)
	if s != nil || err != nil {
		return s, err
	}
	s = &kept{counter: c}
	rand.Read(s.id[:])
	at, err := k.journal.Position(ctx)
	if err == nil {
		err = k.fill(ctx, of.org, s, from, at, turn)
	}
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return s, k.joinLocked(ctx, of, s, at)
}

// resume returns a series that the journal has kept, or nil.
func (k *keeper) resume(ctx context.Context, of seriesKey, c *condition.Counter) (*kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.followed[of.org][of]; s != nil {
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

// fill keeps what the rows of commits up to a position count.
func (k *keeper) fill(
	ctx context.Context, org string, s *kept, from time.Time, upTo uint64, turn condition.Turn,
) error {
	d := make(deltas)
	yield := func() {
		if turn != nil {
			turn.Yield()
		}
	}
	err := k.journal.Allowed(ctx, org, from, upTo, yield, func(row *storage.Record) (err error) {
		if amount, ok := counted(s.counter, row); ok {
			d.add(s, row, amount)
		}
		if len(d[s]) >= fillAtOnce {
			err = k.write(ctx, d, make(map[string][]byte))
			clear(d)
		}
		return err
	})
	if err != nil {
		return err
	}
	return k.write(ctx, d, make(map[string][]byte))
}

// joinLocked follows a series that is kept up to a position.
func (k *keeper) joinLocked(ctx context.Context, of seriesKey, s *kept, at uint64) error {
	if err := k.followLocked(ctx); err != nil {
		return err
	}
	if at > k.at {
		return fmt.Errorf("a window is kept up to commit %d of %d: %w", at, k.at, storage.ErrConflict)
	}
	mark := func(at uint64, set map[string][]byte) {
		v := binary.BigEndian.AppendUint64(s.id[:len(s.id):len(s.id)], k.run)
		set[string(headerKey(of))] = binary.BigEndian.AppendUint64(v, at)
	}
	alone := map[string]map[seriesKey]*kept{of.org: {of: s}}
	if err := k.commits(ctx, &at, k.at, alone, mark); err != nil {
		return err
	}
	set := make(map[string][]byte)
	mark(k.at, set)
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
	for org, all := range k.followed {
		for of, s := range all {
			if s.idle.Load() {
				first, header := string(s.blockKey(0)[:1+len(s.id)]), string(headerKey(of))
				gone.Drop = append(gone.Drop, [2]string{first, first + "\xff"}, [2]string{header, header + "\x00"})
				delete(all, of)
			}
		}
		if len(all) == 0 {
			delete(k.followed, org)
		}
	}
	if len(gone.Drop) == 0 {
		return nil
	}
	return k.journal.Derive(ctx, gone)
}

// Run gives idle places back to the store until ctx ends. Then it gives back all places. Or it keeps
// windows as the commits change them.
func (k *Counters) Run(ctx context.Context) {
	switch {
	case k.cfg.Windows != nil:
		k.leases.Run(ctx, func() {})
	case k.keeper != nil:
		k.keeper.runUntil(ctx)
	}
}

func (k *keeper) runUntil(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.follow(ctx) //nolint:errcheck // the next one tries again, and a read that needs it gets its error
		case <-ctx.Done():
			k.follow(context.WithoutCancel(ctx)) //nolint:errcheck // the next start follows what is missing
			return
		}
	}
}
