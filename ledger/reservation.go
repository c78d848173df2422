package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ/storage"
)

// Reservation is one intent's place in its organization's meter of the month. It is
// held from before the intent is evaluated until the decision is committed or given
// up. A Reservation belongs to one goroutine and must not be copied once it is used.
type Reservation struct {
	org    string
	id     uuid.UUID
	at     time.Time // id's time
	quotas *quotas
	claim  claim // of no quota once the reservation is committed or released
}

// Reserve takes a place in org's meter of the current month, whose limit is limit.
// The reservation must be committed or released. An error means that the meter is not
// known: refuse. org must be the ledger's to keep, as [Entry] says.
func (l *Ledger) Reserve(ctx context.Context, org string, limit int64) (Reservation, error) {
	id, at := l.ids.next(l.cfg.Now())
	c, err := l.quotas.take(ctx, quotaKey{org: org, month: storage.MonthOf(at)}, limit)
	if err != nil {
		return Reservation{}, fmt.Errorf("reserving a place in the meter: %w", err)
	}
	// All decisions of an organization name it by one text, which maps of organizations tell
	// from others without reading it.
	return Reservation{org: c.quota.key.org, id: id, at: at, quotas: l.quotas, claim: c}, nil
}

// Exceeded reports whether the place is above the limit: all places within it are
// taken by decisions or held by reservations, here or in another process. A replay, a
// reservation that is given up and a commit whose outcome is unknown hold their places
// until they are settled, and a process may hold granted places for a moment, so
// Exceeded can be true too early, never too late.
func (r *Reservation) Exceeded() bool { return !r.claim.within }

// DecisionID returns the id of the decision that the reservation is for.
func (r *Reservation) DecisionID() string { return r.id.String() }

// Time returns when the decision was made, which is when the place was reserved.
func (r *Reservation) Time() time.Time { return r.at }

// Release gives the place back unless the reservation was committed. Later calls do
// nothing.
func (r *Reservation) Release() {
	if r.claim.quota != nil {
		r.quotas.giveBack(&r.claim)
	}
}
