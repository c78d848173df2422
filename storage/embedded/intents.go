package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// intentSeed is random, so that no client can choose intents whose hashes collide.
var intentSeed = maphash.MakeSeed()

// hashIntent returns the hash of an intent's key.
func hashIntent(k []byte) uint64 { return maphash.Bytes(intentSeed, k) }

// intentFilter tells that an intent is not stored, which nearly every intent that arrives
// is. That costs a fiftieth of asking Pebble, whose filters are reached through an iterator
// for each table. The filter is in memory only: 1.3 bytes an intent, in steps of 4 MiB. A
// look-up costs a cache line for each 3,200,000 intents. Its methods are safe for concurrent
// use.
type intentFilter struct {
	// ready is set once every stored intent was added. Until then nothing is known.
	ready atomic.Bool

	mu    sync.Mutex
	room  int // for intents in the last part
	parts atomic.Pointer[[]*filterPart]
}

// add adds an intent by its hash. Whoever stores an intent adds it before others can look.
func (f *intentFilter) add(hash uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room == 0 {
		parts := append(slices.Clip(f.all()), new(filterPart))
		f.parts.Store(&parts)
		f.room = partIntents
	}
	f.room--
	parts := f.all()
	parts[len(parts)-1].add(hash)
}

// lacks reports that no intent with that hash is stored. In each part it misses one of a
// hundred that are not.
func (f *intentFilter) lacks(hash uint64) bool {
	return f.ready.Load() && !slices.ContainsFunc(f.all(), func(p *filterPart) bool { return p.has(hash) })
}

func (f *intentFilter) all() []*filterPart {
	if parts := f.parts.Load(); parts != nil {
		return *parts
	}
	return nil
}

// filterPart is a Bloom filter whose bits of an intent are in one line of the processor's
// cache.
type filterPart [filterLines * lineWords]atomic.Uint64

const (
	filterLines = 1 << 16
	lineWords   = 8
	linePlaces  = 9 // bits of a hash for a place in a line
	hashPlaces  = 5
	// partIntents is how many intents a part has: 10.5 bits each, which lets 0.9 % of other
	// intents through.
	partIntents = 3_200_000
)

func (p *filterPart) add(hash uint64) {
	line := hash >> 48 * lineWords
	for range hashPlaces {
		p[line+hash>>6&7].Or(1 << (hash & 63))
		hash >>= linePlaces
	}
}

// has reports whether an intent may have been added.
func (p *filterPart) has(hash uint64) bool {
	line := hash >> 48 * lineWords
	for range hashPlaces {
		if p[line+hash>>6&7].Load()&(1<<(hash&63)) == 0 {
			return false
		}
		hash >>= linePlaces
	}
	return true
}

// fillIntents begins to add the stored intents to the filter, in the background. Intents
// that are stored from now on add themselves.
func (s *Store) fillIntents() {
	s.background.Go(func() {
		all, err := s.addIntents()
		s.known.ready.Store(all && err == nil)
		if err != nil {
			s.health.log.Warn("commits look each intent up on the disk, which takes longer", "err", err.Error())
		}
	})
}

// addIntents adds the stored intents to the filter. Close ends it before it has added all.
func (s *Store) addIntents() (all bool, err error) {
	prefix := key{byte(kindIntent)}
	it, err := s.newIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefix.end()})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		select {
		case <-s.stopping:
			return false, nil
		default:
			s.known.add(hashIntent(it.Key()))
		}
	}
	return true, it.Error()
}

// mayHave reports whether an intent may be stored. commits is held.
func (s *Store) mayHave(i intent) bool {
	s.keys = s.keys[:0].org(kindIntent, i.org).text(i.id)
	return !s.known.lacks(hashIntent(s.keys))
}

// intentTable has the intents of a tree. Their keys are random: sorting them once, when
// they are written to Pebble, costs less than keeping them sorted.
type intentTable struct {
	rows  []kv
	place map[uint64]uint32 // in rows, by the hash of the key
}

// add adds an intent and returns false if it has no place for it, because another intent
// has its hash.
func (t *intentTable) add(hash uint64, row kv) bool {
	at, taken := t.place[hash]
	switch {
	case !taken:
		t.place[hash] = uint32(len(t.rows))
		t.rows = append(t.rows, row)
	case t.rows[at].k == row.k:
		t.rows[at] = row
	default:
		return false
	}
	return true
}

func (t *intentTable) get(k key) (v string, found bool) {
	if len(t.rows) == 0 {
		return "", false
	}
	at, found := t.place[hashIntent(k)]
	if !found || t.rows[at].k != string(k) {
		return "", false
	}
	return t.rows[at].v, true
}

// within returns the intents whose keys are in the bounds.
func (t *intentTable) within(lower, upper []byte) (rows []kv) {
	for _, row := range t.rows {
		if row.k >= string(lower) && (upper == nil || row.k < string(upper)) {
			rows = append(rows, row)
		}
	}
	return rows
}

// sortedIntent is the place of an intent in rows, with eight bytes of its key that come
// after what all keys share.
type sortedIntent struct {
	bytes uint64
	place uint32
}

// sorted returns the intents in the order of their keys. Eight bytes tell nearly all of them
// apart, which costs a fifth of comparing keys. It rests as p says.
func (t *intentTable) sorted(p *pacer) []sortedIntent {
	if len(t.rows) == 0 {
		return nil
	}
	first, shared := t.rows[0].k, len(t.rows[0].k)
	for _, row := range t.rows {
		shared = min(shared, len(row.k))
		for row.k[:shared] != first[:shared] {
			shared--
		}
	}
	order := make([]sortedIntent, len(t.rows))
	for i, row := range t.rows {
		var eight [8]byte
		copy(eight[:], row.k[shared:])
		order[i] = sortedIntent{binary.BigEndian.Uint64(eight[:]), uint32(i)}
	}
	slices.SortFunc(order, func(a, b sortedIntent) int {
		p.step()
		if c := cmp.Compare(a.bytes, b.bytes); c != 0 {
			return c
		}
		return cmp.Compare(t.rows[a.place].k, t.rows[b.place].k)
	})
	return order
}
