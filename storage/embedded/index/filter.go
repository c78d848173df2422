package index

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Filter recognizes hashes that were not added, because nearly every intent that arrives is new. It
// is a Bloom filter in memory and takes 1.3 to 2.6 bytes for each hash. It has parts, each of twice
// the size of the part before. A look-up reads one cache line of each part. The methods may be
// called concurrently.
type Filter struct {
	mu    sync.Mutex
	room  int // hashes that still fit into the last part
	parts atomic.Pointer[[]filterPart]
}

// filterPart has all bits of a hash in one line, that is in one cache line of the processor. The
// first bits of a hash choose the line.
type filterPart struct {
	words []atomic.Uint64
	shift uint // by which a hash is shifted to get its line
}

const (
	lineBits   = 512
	lineWords  = lineBits / 64
	linePlaces = 9 // bits of a hash that choose a place in a line
	hashPlaces = 5
	// lineHashes is how many hashes a part holds for each line. Each hash then has 10.5 bits of the
	// part. So Lacks is false for 0.9 % of the hashes that were not added.
	lineHashes = 49
	// leastLineBits is the logarithm of the lines of the smallest part, which takes 512 KiB.
	leastLineBits = 13
)

// Grow makes room for n more hashes in one part.
func (f *Filter) Grow(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > f.room {
		f.grow(n)
	}
}

func (f *Filter) grow(n int) {
	lines := uint(leastLineBits)
	parts := slices.Clip(f.all())
	if len(parts) > 0 {
		lines = 64 - parts[len(parts)-1].shift + 1
	}
	for lineHashes<<lines < n {
		lines++
	}
	parts = append(parts, filterPart{words: make([]atomic.Uint64, lineWords<<lines), shift: 64 - lines})
	f.parts.Store(&parts)
	f.room = lineHashes << lines
}

// Add adds a hash.
func (f *Filter) Add(hash uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room == 0 {
		f.grow(1)
	}
	f.room--
	parts := f.all()
	parts[len(parts)-1].add(hash)
}

// Lacks reports that a hash was not added. If Lacks returns true, the hash was certainly not added.
func (f *Filter) Lacks(hash uint64) bool {
	return !slices.ContainsFunc(f.all(), func(p filterPart) bool { return p.has(hash) })
}

func (f *Filter) all() []filterPart {
	if parts := f.parts.Load(); parts != nil {
		return *parts
	}
	return nil
}

func (p filterPart) add(hash uint64) {
	line := hash >> p.shift * lineWords
	for range hashPlaces {
		p.words[line+hash>>6&7].Or(1 << (hash & 63))
		hash >>= linePlaces
	}
}

// has reports whether a hash may have been added.
func (p filterPart) has(hash uint64) bool {
	line := hash >> p.shift * lineWords
	for range hashPlaces {
		if p.words[line+hash>>6&7].Load()&(1<<(hash&63)) == 0 {
			return false
		}
		hash >>= linePlaces
	}
	return true
}
