package index

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

// tail has the keys of the last frames of the history. Pebble does not have them yet.
type tail struct {
	// mu guards the fields, the last memtable and all memtables' keys.
	mu sync.RWMutex
	// memtables are in the order of the log. Keys are added to the last one. The others are
	// being written to Pebble.
	memtables []*memtable
}

// memtable has the keys of some frames. frame is the number of the last one.
type memtable struct {
	frame    uint64
	others   map[byte]*rowList // all keys that are in no other field, by their first bytes
	meters   map[string]string
	counters counters
	// keys has others and meters in order. It is filled only when a reader needs it, because
	// sorting all keys once for the write to Pebble costs less.
	keys *btreemap.BTreeMap[string, string]
	// added counts the calls of add. keys has the keys of the first sorted calls.
	added, sorted int
}

func newMemtable() *memtable {
	return &memtable{
		others: make(map[byte]*rowList), meters: make(map[string]string),
		counters: newCounters(),
		keys:     btreemap.New[string, string](16, cmp.Compare[string]),
	}
}

// add adds the keys of a frame.
func (t *tail) add(frame uint64, keys *Keys) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.memtables[len(t.memtables)-1]
	last.add(keys)
	last.frame = frame
}

// add adds keys.
func (t *memtable) add(keys *Keys) {
	for row := range keys.all {
		switch k := row.text[row.start]; k {
		case Meters:
			t.meters[row.key()] = row.value()
		case Counts:
			t.counters.add(row)
		default:
			l := t.others[k]
			if l == nil {
				l = new(rowList)
				t.others[k] = l
			}
			l.add(row)
		}
	}
	t.added++
}

func (t *memtable) len() int {
	n := len(t.meters) + len(t.counters.byKey)
	for _, l := range t.others {
		n += len(l.rows)
	}
	return n
}

// behind reports whether t.keys lacks keys.
func (t *memtable) behind() bool { return t.sorted < t.added }

// sortedAtOnce is how many keys are sorted while the tail is locked. No keys can be added meanwhile, so
// commits wait: some 0.1 ms for so many.
const sortedAtOnce = 128

// behindIn reports whether t.keys lacks keys that begin with a byte.
func (t *memtable) behindIn(first byte) bool {
	l := t.others[first]
	return l != nil && l.read < len(l.rows)
}

// sort adds to t.keys the keys that it lacks.
func (t *memtable) sort() { t.sortSome(math.MaxInt) }

// sortIn adds to t.keys at most n keys that it lacks and that begin with a byte. It returns how much of n is left.
func (t *memtable) sortIn(first byte, n int) int {
	l := t.others[first]
	for ; l != nil && l.read < len(l.rows) && n > 0; l.read++ {
		row := l.at(l.read)
		t.keys.ReplaceOrInsert(row.k, row.v)
		n--
	}
	return n
}

// sortSome adds to t.keys at most n keys that it lacks, and all meters.
func (t *memtable) sortSome(n int) {
	if !t.behind() {
		return
	}
	for first := range t.others {
		n = t.sortIn(first, n)
	}
	if n == 0 {
		return
	}
	for k, v := range t.meters {
		t.keys.ReplaceOrInsert(k, v)
	}
	t.sorted = t.added
}

// get returns the value of a key. The keys with its first byte must be sorted, unless the key is a meter's.
func (t *memtable) get(k []byte) (v string, found bool) {
	switch {
	case len(k) == 0:
		return "", false
	case k[0] == Meters && t.meters != nil:
		v, found = t.meters[string(k)]
		return v, found
	}
	_, v, found = t.keys.Get(string(k))
	return v, found
}

// each calls f in order for all keys except the meters and the counts, until f returns false. It pauses as p says.
func (t *memtable) each(p *pacer, f func(k, v string) bool) {
	for _, k := range slices.Sorted(maps.Keys(t.others)) {
		l := t.others[k]
		order := l.sorted(p)
		for i, at := range order {
			row := l.at(int(at.place))
			if i+1 < len(order) && order[i+1].bytes == at.bytes && l.at(int(order[i+1].place)).k == row.k {
				continue // a later row has the same key and replaces this one
			}
			if !f(row.k, row.v) {
				return
			}
			p.step()
		}
	}
}

// get returns the value of a key.
func (t *tail) get(k []byte) (v string, found bool) {
	if len(k) == 0 || !t.has(k, k) {
		return "", false
	}
	if k[0] != Meters { // a key alone does not need the others in order: a commit with a change looks one up
		t.sortWhile(func(m *memtable) bool { return m.behindIn(k[0]) }, func(m *memtable) { m.sortIn(k[0], sortedAtOnce) })
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := len(t.memtables) - 1; i >= 0 && !found; i-- {
		v, found = t.memtables[i].get(k)
	}
	return v, found
}

// has reports whether there may be keys between lower and upper. It compares only first bytes. It
// lets a reader of documents continue before the keys of the history are sorted.
func (t *tail) has(lower, upper []byte) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.ContainsFunc(t.memtables, func(tr *memtable) bool { return tr.has(lower, upper) })
}

// has is like tail.has, for one memtable. An empty key is no bound.
func (t *memtable) has(lower, upper []byte) bool {
	between := func(k byte) bool {
		return (len(lower) == 0 || k >= lower[0]) && (len(upper) == 0 || k <= upper[0])
	}
	for k := range t.others {
		if between(k) {
			return true
		}
	}
	return len(t.meters) > 0 && between(Meters)
}

// sort sorts the keys of all memtables. It lets others add keys meanwhile, so some may be unsorted again
// when it returns.
func (t *tail) sort() {
	t.sortWhile((*memtable).behind, func(m *memtable) { m.sortSome(sortedAtOnce) })
}

// sortWhile calls some for all memtables, while any of them is behind.
func (t *tail) sortWhile(behind func(*memtable) bool, some func(*memtable)) {
	for {
		t.mu.RLock()
		again := slices.ContainsFunc(t.memtables, behind)
		t.mu.RUnlock()
		if !again {
			return
		}
		t.mu.Lock()
		for _, m := range t.memtables {
			some(m)
		}
		t.mu.Unlock()
	}
}

// snapshot returns memtables that do not change, the newest first. It omits memtables that have no
// keys within the bounds.
func (t *tail) snapshot(o *pebble.IterOptions) (memtables []*memtable) {
	var lower, upper []byte
	if o != nil {
		lower, upper = o.LowerBound, o.UpperBound
	}
	if t.has(lower, upper) {
		t.sort() // so that little is left to sort while the tail is locked
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.memtables) - 1; i >= 0; i-- {
		from := t.memtables[i]
		if !from.has(lower, upper) {
			continue
		}
		from.sort()
		tr := &memtable{keys: from.keys}
		if i == len(t.memtables)-1 {
			tr.keys = from.keys.Clone()
		}
		memtables = append(memtables, tr)
	}
	return memtables
}
