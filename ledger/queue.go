package ledger

import (
	"runtime"
	"sync"
	"time"
)

// queue is what waits for the committer. It is bounded and drops nothing.
type queue struct {
	limit int

	mu      sync.Mutex
	arrival sync.Cond // signalled when waiting or closed changes; there is one taker
	waiting []*waiter
	closed  bool
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.arrival.L = &q.mu
	return q
}

// put returns nil if the committer will wake w.
func (q *queue) put(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if len(q.waiting) >= q.limit {
		return ErrOverloaded
	}
	// A batch is what waits, up to maxBatch, so these are the first of theirs.
	if len(q.waiting)%maxBatch == 0 {
		w.queued = time.Now()
	}
	q.waiting = append(q.waiting, w)
	if len(q.waiting) == 1 {
		q.arrival.Signal()
	}
	return nil
}

// take moves what waits, but at most limit, into batch, whose content it
// replaces. It blocks until something does, and returns nothing once the queue
// is closed and empty.
//
// It yields once before it takes. On a busy CPU the scheduler runs the taker
// right after the first arrival, before others that are ready to arrive too:
// without the yield every commit pays for a signature and a write of its own.
// On an idle one there is nothing to yield to.
func (q *queue) take(batch []*waiter, limit int) []*waiter {
	q.await()
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), limit)
	batch = append(batch[:0], q.waiting[:n]...)
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return batch
}

func (q *queue) await() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.arrival.Wait()
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrival.Signal()
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
