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

// sweep makes room for another window. When there are twice as many windows as the last sweep
// left, it forgets the empty ones. When there are [maxWindows], it forgets every window in
// which nothing is reserved.
func (k *Counters) sweep(at time.Time) {
	if k.kept < maxWindows && k.kept < 2*k.swept+maxWindows/1024 {
		return
	}
	for id, s := range k.series {
		now := bucketAt(s.counter, at)
		for of, w := range s.windows {
			if w.held == 0 && (w.isEmpty(now) || k.kept >= maxWindows*7/8) {
				delete(s.windows, of)
				k.kept--
			}
		}
		maps.DeleteFunc(s.named, func(_, of string) bool { return s.windows[of] == nil })
		if len(s.windows) == 0 {
			delete(k.series, id)
		}
	}
	k.swept = k.kept
}
