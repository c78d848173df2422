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
	// The window has every part from one to another: see covers.
	from, to int64
	// stale says that the window may have a settlement twice. It is read again once nothing is held.
	stale bool
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

// A count is of the parts from first(now) to last(now), where now is the number of the current part. Later parts are
// of a clock that was ahead.
func first(now int64) int64 { return now - condition.Buckets }
func last(now int64) int64  { return now + condition.Buckets }

// behind is how many parts the clock may go back before a window is read again.
const behind = condition.Buckets / 2

// covers reports whether the window has everything that counts. A window may be read for one time and used for
// another, because clocks are set. Then it is read again.
func (w *window) covers(now int64) bool {
	return w.shared != nil || w.from <= first(now) && last(now) <= w.to && (!w.stale || w.held > 0)
}

// isEmpty reports whether everything that was counted has left the window. now is the number of
// the current part.
func (w *window) isEmpty(now int64) bool {
	if w.shared != nil {
		return w.shared.IsIdle()
	}
	return len(w.parts) == 0 || w.parts[len(w.parts)-1].At < first(now)-behind
}

// expire drops the parts that left the window a while ago. now is the number of the current part.
func (w *window) expire(now int64) {
	old := 0
	for old < len(w.parts) && w.parts[old].At < first(now)-behind {
		old++
	}
	if old > 0 {
		w.parts = append(w.parts[:0], w.parts[old:]...)
	}
	w.from = max(w.from, first(now)-behind)
}

// total returns the count of the window. now is the number of the current part.
func (w *window) total(now int64) (n int64) {
	if w.shared != nil {
		return w.shared.Total()
	}
	for _, p := range w.parts {
		if first(now) <= p.At && p.At <= last(now) {
			n = condition.Saturated(n, p.N)
		}
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
		of[id.org] += len(s.windows)
	}
	for id, s := range k.series {
		k.kept -= len(s.windows)
		s.sweep(bucketAt(s.counter, at), full && of[id.org] > k.max*7/8/len(of))
		k.kept += len(s.windows)
		if len(s.windows) == 0 && (k.cfg.Windows != nil || at.Sub(s.used) > s.counter.Window) {
			s.leave()
			delete(k.series, id)
		}
	}
	k.swept = k.kept
}

// sweep forgets the empty windows of a series, or all windows. now is the number of the current part.
func (s *series) sweep(now int64, all bool) {
	maps.DeleteFunc(s.windows, func(_ string, w *window) bool { return w.held == 0 && (all || w.isEmpty(now)) })
	maps.DeleteFunc(s.named, func(_, of string) bool { return s.windows[of] == nil })
	s.behind++ // the clock may be ahead, so nothing that was forgotten is taken to be over
}

// forget forgets a window that is not held. It is read again.
func (k *Counters) forget(of key) {
	s := k.series[of.seriesKey]
	if s.windows[of.of] == nil {
		of.of = s.named[of.of]
	}
	delete(s.windows, of.of)
	k.kept--
	s.behind++
}

// leave says that the series is not in memory any more.
func (s *series) leave() {
	if s.kept != nil {
		s.kept.idle.Store(true)
	}
}
