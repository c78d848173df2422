package budget

import (
	"slices"
	"time"

	"writ/engine/condition"
	"writ/storage"
	"writ/storage/lease"
)

// window is the count of a counter for one key. It keeps the parts in which something was
// counted.
type window struct {
	parts []storage.WindowPart // by time
	// read is when the window was read: see Counters.reads.
	read uint64
	// held counts reservations that are not committed yet: the history lacks them.
	held int32
	// changes counts additions: a reservation fails if there was one since the reading.
	changes uint32
	// shared is the lease of a window that several processes count in, which has no parts
	// here. It is nil if this process counts alone.
	shared *lease.Lease
}

// bucketAt returns the number of the part that a time is in.
func bucketAt(c *condition.Counter, at time.Time) int64 {
	return at.UnixMilli() / max(1, c.Bucket().Milliseconds())
}

// isEmpty reports whether all that was counted has left the window by the part now.
func (w *window) isEmpty(now int64) bool {
	if w.shared != nil {
		return w.shared.IsIdle()
	}
	return len(w.parts) == 0 || w.parts[len(w.parts)-1].At < now-condition.Buckets
}

// expire drops the parts that have left the window by the part now.
func (w *window) expire(now int64) {
	first := 0
	for first < len(w.parts) && w.parts[first].At < now-condition.Buckets {
		first++
	}
	if first > 0 {
		w.parts = append(w.parts[:0], w.parts[first:]...)
	}
}

// total is the count of the window.
func (w *window) total() (n int64) {
	if w.shared != nil {
		return w.shared.Total()
	}
	for _, p := range w.parts {
		n = condition.Saturated(n, p.N)
	}
	return max(n, 0)
}

// add counts n, which may be less than 0, in a part.
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

// maxWindows is how many windows are kept: some 200 MB with an agent's id of 32 bytes.
// Below a thousandth of it nothing is forgotten.
const maxWindows = 1 << 20

// sweep makes room for another window: it forgets those that are empty once there are
// twice as many as the last sweep left, and any that nothing is reserved in where there
// are [maxWindows].
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
		if len(s.windows) == 0 {
			delete(k.series, id)
		}
	}
	k.swept = k.kept
}
