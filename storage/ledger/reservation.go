package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// Reservation is one intent's place in its organization's meter of the month. It is held from
// before the evaluation of the intent until the decision is committed or given up. A Reservation
// belongs to one goroutine until [Ledger.Enqueue] or [Reservation.Release] ends it. It must not be
// used afterwards.
type Reservation struct {
	id     uuid.UUID
	at     time.Time // id's time
	quotas *quotas
	quota  *quota // nil after the reservation has ended
	limit  int64  // the limit under which the place was taken
	claim  lease.Claim
	within bool
}

// Reserve takes a place in org's meter of the current month, whose limit is limit. The
// reservation must be committed or released. An error means that the state of the meter
// is not known, so the caller must refuse. org must not be a view of a request's buffer,
// as [Entry] says. turn is paused during a request to the store. turn may be nil.
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

// Exceeded reports whether the place is above the limit. Then decisions use, or reservations hold,
// all places within the limit, in this or another process. Exceeded can be true too early, never
// too late. Replays, released reservations and commits of unknown outcome hold their places until
// their outcome is known. A process may also hold granted places for a moment.
func (r *Reservation) Exceeded() bool { return !r.within }

// DecisionID returns the id of the decision that the reservation is for.
func (r *Reservation) DecisionID() string { return r.id.String() }

// Time returns the time of the decision, at which the place was reserved.
func (r *Reservation) Time() time.Time { return r.at }

// Release ends r and gives its place back. It does nothing if r is nil.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.quotas.Lock()
	defer r.quotas.Unlock()
	r.quotas.endLocked(r, false)
}
