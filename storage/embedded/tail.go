package embedded

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

// tail has the keys of the last frames of the history, which Pebble does not have yet. A
// frame's keys are written to Pebble with those of many others, sorted, which costs a
// fraction of writing each frame's: see flush.go.
type tail struct {
	// mu guards the fields and the last tree. Earlier trees do not change.
	mu sync.RWMutex
	// trees are in the order of the log. All but the last are being written to Pebble.
	trees []*tree
}

// tree has the keys of some frames, the last of which is number.
type tree struct {
	keys    *btreemap.BTreeMap[string, string]
	intents intentTable // of kindIntent, but for those in keys
	frame   uint64
}

func newTree() *tree {
	return &tree{keys: btreemap.New[string, string](16, cmp.Compare[string]), intents: intentTable{place: make(map[uint64]uint32)}}
}

// add adds the keys of a frame, and its intents to known.
func (t *tail) add(keys *frameKeys, known *intentFilter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trees[len(t.trees)-1].add(keys, known)
}

// add adds the keys of a frame, and its intents to known unless that is nil.
func (t *tree) add(keys *frameKeys, known *intentFilter) {
	for row := range keys.all {
		if kind(row.k[0]) == kindIntent {
			hash := maphash.String(intentSeed, row.k)
			if known != nil {
				known.add(hash)
			}
			if t.intents.add(hash, row) {
				continue
			}
		}
		t.keys.ReplaceOrInsert(row.k, row.v)
	}
	t.frame = keys.frame
}

func (t *tree) len() int { return t.keys.Len() + len(t.intents.rows) }

func (t *tree) get(k key) (v string, found bool) {
	if len(k) > 0 && kind(k[0]) == kindIntent {
		if v, found = t.intents.get(k); found {
			return v, true
		}
	}
	if t.keys.Len() > 0 {
		_, v, found = t.keys.Get(string(k))
	}
	return v, found
}

// each calls f for all keys, in order, until it returns false. It rests as p says.
func (t *tree) each(p *pacer, f func(k, v string) bool) {
	intents := t.intents.sorted(p)
	going := true
	before := func(k string) {
		for ; going && len(intents) > 0; intents = intents[1:] {
			row := t.intents.rows[intents[0].place]
			if k != "" && row.k > k {
				return
			}
			going = f(row.k, row.v)
			p.step()
		}
	}
	t.keys.AscendFunc(btreemap.Min[string](), btreemap.Max[string](), func(k, v string) bool {
		before(k)
		going = going && f(k, v)
		p.step()
		return going
	})
	before("")
}

// get returns the value of a key.
func (t *tail) get(k key) (v string, found bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return lookUp(t.trees, k)
}

func lookUp(trees []*tree, k key) (v string, found bool) {
	for i := len(trees) - 1; i >= 0 && !found; i-- {
		v, found = trees[i].get(k)
	}
	return v, found
}

// snapshot returns trees that do not change, the newest first, without empty ones. They
// have intents only if the bounds begin among those.
func (t *tail) snapshot(o *pebble.IterOptions) (trees []*tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.trees) - 1; i >= 0; i-- {
		from := t.trees[i]
		if from.len() == 0 {
			continue
		}
		tr := &tree{keys: from.keys, frame: from.frame}
		var intents []kv
		if o != nil && len(o.LowerBound) > 0 && kind(o.LowerBound[0]) == kindIntent {
			intents = from.intents.within(o.LowerBound, o.UpperBound)
		}
		if i == len(t.trees)-1 || len(intents) > 0 {
			tr.keys = from.keys.Clone()
		}
		for _, row := range intents {
			tr.keys.ReplaceOrInsert(row.k, row.v)
		}
		trees = append(trees, tr)
	}
	return trees
}

// live returns the trees, the newest first. The last one must not change meanwhile, so
// commits is held.
func (t *tail) live() []*tree {
	t.mu.RLock()
	defer t.mu.RUnlock()
	trees := slices.Clone(t.trees)
	slices.Reverse(trees)
	return trees
}
