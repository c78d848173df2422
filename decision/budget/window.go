package budget

import (
	"maps"
	"slices"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// window is the count of a counter for one key. It keeps only the parts in which something was
// counted.
type window struct {
	parts []storage.WindowPart // by time
	// read is the value of Counters.reads when the window was read.
	read uint64
	// held is the number of reservations that are not committed yet. The history lacks them.
	held int32
	// changes counts additions. A reservation fails if there was an addition since its Reading.
	changes uint32
	// shared is the lease of a window in which several processes count. Such a window has no
	// parts here. shared is nil if this process counts alone.
	shared *lease.Lease
}

// bucketAt returns the number of the part that contains a time.
func bucketAt(c *condition.Counter, at time.Time) int64 {
	return at.UnixMilli() / max(1, c.Bucket().Milliseconds())
}

// isEmpty reports whether everything that was counted has left the window. now is the number of
// the current part.
func (w *window) isEmpty(now int64) bool {
	if w.shared != nil {
		return w.shared.IsIdle()
	}
	return len(w.parts) == 0 || w.parts[len(w.parts)-1].At < now-condition.Buckets
}

// expire drops the parts that have left the window. now is the number of the current part.
func (w *window) expire(now int64) {
	first := 0
	for first < len(w.parts) && w.parts[first].At < now-condition.Buckets {
		first++
	}
	if first > 0 {
		w.parts = append(w.parts[:0], w.parts[first:]...)
	}
}

// total returns the count of the window.
func (w *window) total() (n int64) {
	if w.shared != nil {
		return w.shared.Total()
	}
	for _, p := range w.parts {
		n = condition.Saturated(n, p.N)
	}
	return max(n, 0)
}

// add counts n in a part. n may be negative.
func (w *window) add(bucket, n int64) {
	w.changes++
	i := len(w.parts)
	for i > 0 && w.parts[i-1].At > bucket {
		i--
	}
	if i > 0 && w.parts[i-1].At == bucket {
		w.parts[i-1].N = condition.Saturated(w.parts[i-1].N, n)
		return
	}
	w.parts = slices.Insert(w.parts, i, storage.WindowPart{At: bucket, N: n})
}

// maxWindows is how many windows are kept. With agent ids of 32 bytes they take some 200 MB.
// While less than a thousandth of them is kept, no window is forgotten.
const maxWindows = 1 << 20

// sweep makes room for another window. When there are twice as many windows as the last sweep left,
// it forgets the empty ones. When there are k.max, it also forgets every window of the organizations
// that have more than their share, except those in which something is reserved. Forgotten counts are
// read again.
func (k *Counters) sweep(at time.Time) {
	if k.kept < k.max && k.kept < 2*k.swept+k.max/1024 {
		return
	}
	full := k.kept >= k.max
	of := make(map[string]int)
	for id, s := range k.series {
		of[id.org] += s.size()
	}
	for id, s := range k.series {
		k.kept -= s.size()
		s.sweep(bucketAt(s.counter, at), full && of[id.org] > k.max*7/8/len(of))
		if k.kept += s.size(); s.size() == 0 && (k.cfg.Windows != nil || at.Sub(s.used) > s.counter.Window) {
			s.leave()
			delete(k.series, id)
		}
	}
	k.swept = k.kept
}

// size returns how many windows a series has.
func (s *series) size() int {
	if s.whole != nil {
		return len(s.windows) + len(s.whole.windows)
	}
	return len(s.windows)
}

// sweep forgets the empty windows of a series, or all windows. now is the number of the current part.
func (s *series) sweep(now int64, all bool) {
	if all {
		s.drop()
	}
	maps.DeleteFunc(s.windows, func(_ string, w *window) bool { return w.held == 0 && (all || w.isEmpty(now)) })
	if s.whole != nil {
		maps.DeleteFunc(s.whole.windows, func(_ string, w *window) bool { return w.isEmpty(now) })
	}
	maps.DeleteFunc(s.named, func(_, of string) bool { return s.windows[of] == nil })
}

// drop makes the series ready to lose windows that are not empty. They are read again: from the journal, once it
// has everything that was counted in them, or else one by one from the rows.
func (s *series) drop() {
	switch {
	case s.whole == nil:
	case s.whole.kept != nil:
		s.whole.behind++
	default:
		s.whole, s.apart = nil, true
	}
}

// leave says that the series is not in memory any more.
func (s *series) leave() {
	if s.whole != nil && s.whole.kept != nil {
		s.whole.kept.idle.Store(true)
	}
}
