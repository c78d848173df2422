package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ/engine/condition"
	"writ/storage"
	"writ/storage/lease"
)

// Reservation is one intent's place in its organization's meter of the month. It is
// held from before the intent is evaluated until the decision is committed or given
// up. It belongs to one goroutine until [Ledger.Enqueue] or [Reservation.Release] ends it:
// afterwards it may be another's.
type Reservation struct {
	id     uuid.UUID
	at     time.Time // id's time
	quotas *quotas
	quota  *quota // nil once the place is given back or used
	limit  int64  // that the place was taken under
	claim  lease.Claim
	within bool
}

// Reserve takes a place in org's meter of the current month, whose limit is limit.
// The reservation must be committed or released. An error means that the meter is not
// known: refuse. org must be the ledger's to keep, as [Entry] says. turn is paused while the
// store is asked; it may be nil.
func (l *Ledger) Reserve(ctx context.Context, turn condition.Turn, org string, limit int64) (*Reservation, error) {
	r, _ := l.quotas.ended.Get().(*Reservation)
	if r == nil {
		r = &Reservation{quotas: l.quotas}
	}
	r.limit = limit
	r.id, r.at = l.ids.next(l.cfg.Now())
	if err := l.quotas.take(ctx, turn, quotaKey{org: org, month: storage.MonthOf(r.at)}, r); err != nil {
		l.quotas.ended.Put(r)
		return nil, fmt.Errorf("reserving a place in the meter: %w", err)
	}
	return r, nil
}

// Exceeded reports whether the place is above the limit: all places within it are
// taken by decisions or held by reservations, here or in another process. A replay, a
// reservation that is given up and a commit whose outcome is unknown hold their places
// until they are settled, and a process may hold granted places for a moment, so
// Exceeded can be true too early, never too late.
func (r *Reservation) Exceeded() bool { return !r.within }

// DecisionID returns the id of the decision that the reservation is for.
func (r *Reservation) DecisionID() string { return r.id.String() }

// Time returns when the decision was made, which is when the place was reserved.
func (r *Reservation) Time() time.Time { return r.at }

// Release ends r and gives its place back. It does nothing for a nil r.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.quotas.Lock()
	defer r.quotas.Unlock()
	r.quotas.endLocked(r, false)
}
