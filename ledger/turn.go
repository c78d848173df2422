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
	org     string
	id      uuid.UUID
	at      time.Time // id's time
	ordinal int64

	meters *meters
	meter  *meter // nil once the turn has ended
}

// Begin takes the next place in org's meter of the current month. The turn must
// be committed or ended. An error means that the meter isn't known: refuse.
// org must be the ledger's to keep, as [Entry] says.
func (l *Ledger) Begin(ctx context.Context, org string) (Turn, error) {
	id, at := l.ids.next(l.cfg.Now())
	m, ordinal, err := l.meters.begin(ctx, meterKey{org: org, month: storage.MonthOf(at)})
	if err != nil {
		return Turn{}, fmt.Errorf("beginning a decision: %w", err)
	}
	return Turn{org: org, id: id, at: at, ordinal: ordinal, meters: l.meters, meter: m}, nil
}

// Ordinal returns how many decisions the meter has with this one: those that
// were committed and those in flight. Where each turn in flight commits a new
// intent, ordinals are distinct and without gaps. A turn that turns out to
// replay, or is given up, or whose commit has failed and may have been made all
// the same, holds its place until that is known, so an ordinal can be too high for
// that moment, but never too low.
func (t *Turn) Ordinal() int64 { return t.ordinal }

// End gives the place in the meter back unless the turn was committed. Only
// the first End of a turn does anything.
func (t *Turn) End() {
	if t.meter == nil {
		return
	}
	t.meters.release(t.meter)
	t.meter = nil
}
