package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ/storage"
)

// Turn is one intent's place in the month's meter of its organization, from
// before it is evaluated until it is committed or given up. A Turn belongs to
// one goroutine and must not be copied once it is used.
type Turn struct {
	org    string
	id     uuid.UUID
	at     time.Time // id's time
	quotas *quotas
	claim  claim // of no quota once the turn has ended
}

// Begin takes a place in org's meter of the current month, whose limit is limit.
// The turn must be committed or ended. An error means that it isn't known how many
// there are: refuse. org must be the ledger's to keep, as [Entry] says.
func (l *Ledger) Begin(ctx context.Context, org string, limit int64) (Turn, error) {
	id, at := l.ids.next(l.cfg.Now())
	c, err := l.quotas.take(ctx, quotaKey{org: org, month: storage.MonthOf(at)}, limit)
	if err != nil {
		return Turn{}, fmt.Errorf("beginning a decision: %w", err)
	}
	return Turn{org: org, id: id, at: at, quotas: l.quotas, claim: c}, nil
}

// Exceeded reports whether the turn's place is above the limit it was begun with:
// all that are within it were decided or are held, here or elsewhere. A turn that
// turns out to replay, or is given up, or whose commit has failed and may have been
// made all the same, holds its place until that is known, and a process that has
// asked for places may hold some for a moment, so a turn can be exceeded too early,
// but never too late.
func (t *Turn) Exceeded() bool { return !t.claim.within }

// End gives the place back unless the turn was committed. Only the first End of a
// turn does anything.
func (t *Turn) End() {
	if t.claim.quota != nil {
		t.quotas.giveBack(&t.claim)
	}
}
