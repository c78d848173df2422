package index

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// intentSeed is random, so that no client can choose intents whose hashes collide.
var intentSeed = maphash.MakeSeed()

func hashIntent(k []byte) uint64 { return maphash.Bytes(intentSeed, k) }

// Filter recognizes keys that were not added, because nearly every intent that arrives is new.
// Asking a Filter costs a fiftieth of asking Pebble, which needs an iterator for each table to
// reach its own filters. A Filter is only in memory. It takes 1.3 bytes for each key, in steps of 4
// MiB. A look-up reads one cache line for each 3,200,000 keys. The methods may be called
// concurrently.
type Filter struct {
	mu    sync.Mutex
	room  int // intents that still fit into the last part
	parts atomic.Pointer[[]*filterPart]
}

// Add adds a key.
func (f *Filter) Add(k []byte) { f.add(hashIntent(k)) }

func (f *Filter) add(hash uint64) {
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

// Lacks reports that the key k was not added. If Lacks returns true, k was certainly not added. For
// each 4 MiB of the filter, Lacks returns false for about 1 % of the keys that were not added.
func (f *Filter) Lacks(k []byte) bool {
	hash := hashIntent(k)
	return !slices.ContainsFunc(f.all(), func(p *filterPart) bool { return p.has(hash) })
}

func (f *Filter) all() []*filterPart {
	if parts := f.parts.Load(); parts != nil {
		return *parts
	}
	return nil
}

// filterPart is a Bloom filter. All bits of an intent are in one cache line of the processor.
type filterPart [filterLines * lineWords]atomic.Uint64

const (
	filterLines = 1 << 16
	lineWords   = 8
	linePlaces  = 9 // bits of a hash that choose a place in a line
	hashPlaces  = 5
	// partIntents is how many intents a part holds. Each intent then has 10.5 bits of the part. So
	// Lacks is false for 0.9 % of the intents that were not added.
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

// intentTable has the intents of a memtable. They are looked up one at a time.
type intentTable struct {
	rowList
	place map[uint64]uint32 // the last row whose key has this hash
}

// add adds an intent.
func (t *intentTable) add(hash uint64, row textRow) {
	t.place[hash] = uint32(len(t.rows))
	t.rowList.add(row)
}

// get returns the last value that was added for a key. If another key has the same hash (a chance
// of 1 in 2⁶⁴), get looks at all rows.
func (t *intentTable) get(k []byte) (v string, found bool) {
	at, taken := t.place[hashIntent(k)]
	for i := int(at); taken && i >= 0; i-- {
		if row := t.at(i); row.k == string(k) {
			return row.v, true
		}
	}
	return "", false
}

// within returns the intents whose keys are in the bounds, in the order in which they were added.
func (t *intentTable) within(lower, upper []byte) (rows []kv) {
	for i := range t.rows {
		if row := t.at(i); row.k >= string(lower) && (upper == nil || row.k < string(upper)) {
			rows = append(rows, row)
		}
	}
	return rows
}
