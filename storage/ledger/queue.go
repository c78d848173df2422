package ledger

import (
	"runtime"
	"sync"
	"time"
)

// orgShare divides the limit of the queue into the limit of one organization. An
// organization may fill at most half of the queue, so that its backlog leaves room for
// others.
const orgShare = 2

// queue holds the waiters until the committer takes them. It has a bound for all waiters
// and a bound for each organization. It drops nothing.
type queue struct {
	limit int

	mu      sync.Mutex
	arrival sync.Cond // signalled when waiting or closed changes; only one goroutine waits
	waiting []*waiter
	intents int            // of waiting
	byOrg   map[string]int // intents of waiting by organization
	closed  bool
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit, byOrg: make(map[string]int)}
	q.arrival.L = &q.mu
	return q
}

// put adds w, which the committer will wake.
func (q *queue) put(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	org, n := w.org(), w.size()
	if q.intents >= q.limit || q.byOrg[org] >= max(1, q.limit/orgShare) {
		return ErrOverloaded
	}
	q.byOrg[org] += n
	q.intents += n
	w.queued = time.Now()
	q.waiting = append(q.waiting, w)
	if len(q.waiting) == 1 {
		q.arrival.Signal()
	}
	return nil
}

// take replaces the content of batch by up to limit waiting intents. If more wait, each
// organization gets an equal share, so that the backlog of one organization does not
// delay the others. take blocks until an intent waits. It returns nothing when the queue
// is closed and empty.
//
// take first yields the processor once. On a busy CPU the scheduler runs take right after
// the first arrival, before other goroutines that are ready to put. Without the yield
// every commit would be a batch of its own, with its own signature and write.
func (q *queue) take(batch []*waiter, limit int) []*waiter {
	q.await()
	runtime.Gosched()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.intents > limit {
		return q.takeInTurnLocked(batch[:0], limit)
	}
	batch = append(batch[:0], q.waiting...)
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	q.intents = 0
	clear(q.byOrg)
	return batch
}

// takeInTurnLocked takes the first waiter of each organization, then the second of each, and
// so on up to limit intents. The batch keeps the order of arrival, so that an organization's
// first intent is decided first. A waiter is never divided, so the last one may exceed the
// limit.
func (q *queue) takeInTurnLocked(batch []*waiter, limit int) []*waiter {
	rounds, sizes := q.roundsLocked()
	last := 0
	for ; last < len(sizes)-1 && limit > sizes[last]; last++ {
		limit -= sizes[last]
	}
	rest := q.waiting[:0]
	for i, w := range q.waiting {
		if rounds[i] > last || rounds[i] == last && limit <= 0 {
			rest = append(rest, w)
			continue
		}
		if rounds[i] == last {
			limit -= w.size()
		}
		batch = append(batch, w)
		q.intents -= w.size()
		if q.byOrg[w.org()] -= w.size(); q.byOrg[w.org()] == 0 {
			delete(q.byOrg, w.org())
		}
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	return batch
}

// roundsLocked returns in rounds the round in which each waiter is taken. A waiter's
// round is the number of intents that wait before it for the same organization. sizes has
// the number of intents in each round.
func (q *queue) roundsLocked() (rounds, sizes []int) {
	rounds = make([]int, len(q.waiting))
	seen := make(map[string]int, len(q.byOrg))
	for i, w := range q.waiting {
		r := seen[w.org()]
		seen[w.org()] += w.size()
		for r >= len(sizes) {
			sizes = append(sizes, 0)
		}
		rounds[i] = r
		sizes[r] += w.size()
	}
	return rounds, sizes
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
	return q.intents
}
