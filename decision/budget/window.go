package budget

import (
	"time"

	"writ/engine/condition"
)

// window is what a counter has come to for one key. It grows with the parts in which
// something was counted.
type window struct {
	parts []part // by time
	// read is when the window was read: see Counters.reads.
	read uint64
	// held is what is reserved and not yet committed: the history does not have it.
	held int32
	// changes counts what was added, so that who reserves notices it.
	changes uint32
}

// part is what was counted in one part of a window.
type part struct {
	bucket int32 // the number of the part since 1970
	n      int64
}

// bucketAt returns the number of the part that a time is in.
func bucketAt(c *condition.Counter, at time.Time) int32 {
	return int32(at.Unix() / max(1, int64(c.Bucket()/time.Second))) //nolint:gosec // until the year 2106, for parts of a second
}

// isEmpty reports whether nothing in the window is counted by the part now.
func (w *window) isEmpty(now int32) bool {
	return len(w.parts) == 0 || w.parts[len(w.parts)-1].bucket < now-condition.Buckets
}

// expire forgets what has left the window by the part now.
func (w *window) expire(now int32) {
	first := 0
	for first < len(w.parts) && w.parts[first].bucket < now-condition.Buckets {
		first++
	}
	if first > 0 {
		w.parts = append(w.parts[:0], w.parts[first:]...)
	}
}

// total is what the window has come to.
func (w *window) total() (n int64) {
	for _, p := range w.parts {
		n = condition.Saturated(n, p.n)
	}
	return max(n, 0)
}

// add counts n, which may be less than 0, in a part.
func (w *window) add(bucket int32, n int64) {
	w.changes++
	i := len(w.parts)
	for i > 0 && w.parts[i-1].bucket > bucket {
		i--
	}
	if i > 0 && w.parts[i-1].bucket == bucket {
		w.parts[i-1].n = condition.Saturated(w.parts[i-1].n, n)
		return
	}
	w.parts = append(w.parts, part{})
	copy(w.parts[i+1:], w.parts[i:])
	w.parts[i] = part{bucket, n}
}
