package index

import (
	"iter"
	"slices"
)

// recent has entries in memory. Entries are added all the time and rarely read, so they are in sorted runs. In a tree
// each would be sorted into many, which took a tenth of what a decision takes.
type recent struct {
	fresh []Entry // in the order in which they were added
	// tiers have runs, each sorted and without equal entries. When a tier has runTier runs, they become one run of the
	// next tier. The last tier has any number: making a longer run would delay the commit that adds.
	tiers [5][]run
	spans spans
}

// run has sorted entries. Those whose name begins with the byte b are entries[starts[b]:starts[b+1]].
type run struct {
	entries []Entry
	starts  [256 + 1]uint32
}

// firstByte is how far a name is shifted to get its first byte.
const firstByte = 56

func newRun(entries []Entry) run {
	r := run{entries: entries}
	for i := range entries {
		r.starts[entries[i].Name>>firstByte+1]++
	}
	for b := range 256 {
		r.starts[b+1] += r.starts[b]
	}
	return r
}

const (
	// freshLen is how many entries become a run. runTier runs become a longer one.
	freshLen = 256
	runTier  = 4
)

func newRecent() *recent { return &recent{spans: noSpans()} }

func (r *recent) add(e Entry) {
	r.spans.add(e)
	if r.fresh = append(r.fresh, e); len(r.fresh) < freshLen {
		return
	}
	r.tiers[0] = append(r.tiers[0], newRun(sorted(slices.Clone(r.fresh))))
	r.fresh = r.fresh[:0]
	for t := range len(r.tiers) - 1 {
		if len(r.tiers[t]) == runTier {
			longer := make([]Entry, 0, len(r.tiers[t])*len(r.tiers[t][0].entries))
			longer = slices.AppendSeq(longer, merged(entriesOf(r.tiers[t])))
			r.tiers[t+1] = append(r.tiers[t+1], newRun(longer))
			r.tiers[t] = slices.Delete(r.tiers[t], 0, runTier)
		}
	}
}

// sorted sorts entries, and leaves out equal ones.
func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, compare)
	return slices.Compact(entries)
}

func entriesOf(runs []run) [][]Entry {
	all := make([][]Entry, len(runs))
	for i := range runs {
		all[i] = runs[i].entries
	}
	return all
}

// merged yields the entries of sorted runs in order, equal ones once.
func merged(runs [][]Entry) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		left := slices.DeleteFunc(slices.Clone(runs), func(run []Entry) bool { return len(run) == 0 })
		var last *Entry
		for len(left) > 0 {
			best := 0
			var second *Entry // the least of the other runs
			for i := 1; i < len(left); i++ {
				e := &left[i][0]
				if nearest := &left[best][0]; e.before(nearest) {
					best, e = i, nearest
				}
				if second == nil || e.before(second) {
					second = e
				}
			}
			run := left[best]
			for first := true; len(run) > 0 && (first || second == nil || run[0].before(second)); first = false {
				if e := &run[0]; last == nil || *e != *last {
					if last = e; !yield(*e) {
						return
					}
				}
				run = run[1:]
			}
			if left[best] = run; len(run) == 0 {
				left = slices.Delete(left, best, best+1)
			}
		}
	}
}

// before reports whether e comes before other.
func (e *Entry) before(other *Entry) bool {
	switch {
	case e.Name != other.Name:
		return e.Name < other.Name
	case e.At != other.At:
		return e.At < other.At
	case e.Frame != other.Frame:
		return e.Frame < other.Frame
	}
	return e.Item < other.Item
}

// find returns the index of the first entry that is not before e.
func (r *run) find(e *Entry) int {
	from, to := int(r.starts[e.Name>>firstByte]), int(r.starts[e.Name>>firstByte+1])
	for from < to {
		if i := (from + to) / 2; r.entries[i].before(e) {
			from = i + 1
		} else {
			to = i
		}
	}
	return from
}

// recentRead is how many entries are read from memory at a time. Nothing can be added meanwhile.
const recentRead = 64

// near does what table.near does.
func (r *recent) near(from, to Entry, back bool, dst []Entry) (_ []Entry, more bool) {
	within := func(e *Entry) bool { return !back && !to.before(e) || back && !e.before(&to) }
	var room [32][]Entry
	left := room[:0] // what is left of the runs that have more
	add := func(run []Entry) {
		if len(run) > 0 && within(next(run, back)) {
			left = append(left, run)
		}
	}
	for t := range r.tiers {
		for n := range r.tiers[t] {
			run := &r.tiers[t][n]
			switch i := run.find(&from); {
			case !back:
				add(run.entries[i:])
			case i < len(run.entries) && run.entries[i] == from:
				add(run.entries[:i+1])
			default:
				add(run.entries[:i])
			}
		}
	}
	add(r.freshNear(&from, back))
	for start := len(dst); len(left) > 0 && len(dst)-start < recentRead; {
		best := 0
		var second *Entry
		for i := 1; i < len(left); i++ {
			e := next(left[i], back)
			if nearest := next(left[best], back); e.before(nearest) != back {
				best, e = i, nearest
			}
			if second == nil || e.before(second) != back {
				second = e
			}
		}
		// Most entries of a list were added in its order, so what follows is mostly of the same run.
		run := left[best]
		for first := true; len(run) > 0 && len(dst)-start < recentRead; first = false {
			e := next(run, back)
			if !within(e) || !first && second != nil && e.before(second) == back {
				break
			}
			if len(dst) == start || dst[len(dst)-1] != *e {
				dst = append(dst, *e)
			}
			if back {
				run = run[:len(run)-1]
			} else {
				run = run[1:]
			}
		}
		if left[best] = run; len(run) == 0 || !within(next(run, back)) {
			left = slices.Delete(left, best, best+1)
		}
	}
	return dst, len(left) > 0
}

// freshNear returns the fresh entries of from's name from it on, in order.
func (r *recent) freshNear(from *Entry, back bool) (near []Entry) {
	for i := range r.fresh {
		e := &r.fresh[i]
		if e.Name == from.Name && (*e == *from || from.before(e) != back) {
			if near == nil {
				near = make([]Entry, 0, len(r.fresh)-i)
			}
			near = append(near, *e)
		}
	}
	if !slices.IsSortedFunc(near, compare) {
		near = sorted(near)
	}
	return near
}

// next returns the next entry of a run, which is not empty.
func next(run []Entry, back bool) *Entry {
	if back {
		return &run[len(run)-1]
	}
	return &run[0]
}

// all yields all entries in order. Nothing may be added before it ends.
func (r *recent) all() iter.Seq[Entry] {
	return merged(append(entriesOf(slices.Concat(r.tiers[:]...)), sorted(slices.Clone(r.fresh))))
}
