package admission

import "time"

// waiter is a request in the room. Whoever takes it out sends its verdict.
type waiter struct {
	verdict  chan Verdict // holds one
	deadline time.Time
	behind   *waiter
}

// room is the queue of those that wait, first in, first out. All wait equally
// long, so the first's deadline is the earliest.
type room struct {
	first, last *waiter
	len         int
}

func (r *room) push(w *waiter) {
	if r.len == 0 {
		r.first = w
	} else {
		r.last.behind = w
	}
	r.last = w
	r.len++
}

func (r *room) pop() *waiter {
	w := r.first
	r.first, w.behind = w.behind, nil
	r.len--
	return w
}
