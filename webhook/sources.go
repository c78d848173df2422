package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"writ/engine"
	"writ/storage"
)

// Held finds the decisions that wait for an approval: its facts are rows of the history, so
// that a decision is not delayed for them.
type Held struct {
	history storage.History
	now     func() time.Time
	// whole is when an organization's rows were read last from its position on.
	whole map[string]time.Time
}

// NewHeld returns a source over a history. A nil now is time.Now.
func NewHeld(history storage.History, now func() time.Time) *Held {
	if now == nil {
		now = time.Now
	}
	return &Held{history: history, now: now, whole: make(map[string]time.Time)}
}

const (
	// late is how long after its time a row may appear: while it is committed, and as far
	// as replicas' clocks differ.
	late = 2 * storage.MaxSkew
	// soon is within what rows ordinarily appear. Later ones are found by reading from the
	// position on, each wholeEvery.
	soon       = 10 * time.Second
	wholeEvery = 15 * time.Second
	// moveEvery is how far the position may be behind where there was nothing to tell.
	moveEvery = 10 * time.Minute
)

// Name implements [Source].
func (h *Held) Name() string { return "held" }

// Wanted implements [Source].
func (h *Held) Wanted(w *storage.Webhook) bool {
	return slices.Contains(w.Events, storage.ApprovalPending)
}

// Since implements [Source]. The position is a time before which no row can appear that
// was not told.
func (h *Held) Since(
	ctx context.Context, org, position string, begin time.Time, tell func([]storage.Event, string) error,
) error {
	from := begin
	if position != "" {
		at, err := time.Parse(time.RFC3339Nano, position)
		if err != nil {
			return fmt.Errorf("reading a position of held decisions: %w", err)
		}
		if at.After(from) {
			from = at
		}
	}
	now := h.now()
	last, known := h.whole[org]
	whole := !known || now.Sub(last) >= wholeEvery
	if recent := now.Add(-soon); !whole && recent.After(from) {
		from = recent
	}
	settled, end := now.Add(-late), now.Add(late)
	for start := from; from.Before(end); {
		rows, to, err := h.between(ctx, org, from, end)
		if err != nil {
			return err
		}
		if next := earlier(to, settled); whole && (len(rows) > 0 && next.After(start) || next.Sub(start) > moveEvery) {
			position = next.UTC().Format(time.RFC3339Nano)
		}
		if err := tell(heldEvents(rows), position); err != nil {
			return err
		}
		from = to
	}
	if whole {
		h.whole[org] = now
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// between returns the held decisions from a time to another, or to an earlier one where
// there are too many, the oldest first.
func (h *Held) between(ctx context.Context, org string, from, to time.Time) ([]*storage.Record, time.Time, error) {
	for {
		rows, all, err := h.list(ctx, org, storage.Filter{Decision: engine.ApprovalRequired, From: from, To: to})
		if err != nil {
			return nil, to, err
		}
		half := to.Sub(from) / 2
		if all || half < time.Millisecond {
			slices.Reverse(rows)
			return rows, to, nil
		}
		to = from.Add(half)
	}
}

// list returns what f selects, the newest first, and whether that is all. What was decided
// within two milliseconds is not divided.
func (h *Held) list(ctx context.Context, org string, f storage.Filter) (rows []*storage.Record, all bool, err error) {
	for p := (storage.Page{Limit: maxPage}); ; {
		page, next, err := h.history.ListRecords(ctx, org, f, p)
		if err != nil {
			return nil, false, fmt.Errorf("reading held decisions: %w", err)
		}
		rows = append(rows, page...)
		if next == "" {
			return rows, true, nil
		}
		if len(rows) >= maxPage && f.To.Sub(f.From) > 2*time.Millisecond {
			return nil, false, nil
		}
		p.After = next
	}
}

func heldEvents(rows []*storage.Record) []storage.Event {
	events := make([]storage.Event, len(rows))
	for i, r := range rows {
		data := map[string]any{
			"approval_id": r.DecisionID, "intent_id": r.IntentID, "policy_id": r.PolicyID, "policy_version": r.PolicyVersion,
			"agent_id": r.AgentID, "action_type": r.ActionType, "resource": r.Resource, "reasons": r.Reasons,
			"decided_at": r.DecidedAt.UTC(),
		}
		if r.Cost != nil {
			data["cost"] = r.Cost
		}
		events[i] = storage.Event{
			Type: storage.ApprovalPending, Subject: "approval/" + r.DecisionID, Fact: "pending", At: r.DecidedAt, Data: data,
		}
	}
	return events
}

// Usage finds organizations that are near the evaluations of their plan.
type Usage struct {
	used  func(ctx context.Context, org string) (used, limit int64, err error)
	now   func() time.Time
	asked map[string]time.Time
}

// NewUsage returns a source that asks used what an organization has used of its
// evaluations in this month; a limit of 0 is none. A nil now is time.Now.
func NewUsage(used func(ctx context.Context, org string) (used, limit int64, err error), now func() time.Time) *Usage {
	if now == nil {
		now = time.Now
	}
	return &Usage{used: used, now: now, asked: make(map[string]time.Time)}
}

// askEvery is how often usage is asked for, which costs a store more than a look-up.
const askEvery = 10 * time.Second

// nearPercent is how much of a limit is near it.
const nearPercent = 80

// Name implements [Source].
func (u *Usage) Name() string { return "usage" }

// Wanted implements [Source].
func (u *Usage) Wanted(w *storage.Webhook) bool {
	return slices.Contains(w.Events, storage.UsageLimitNear)
}

// Since implements [Source]. The position is the month and the limit that were told of last.
func (u *Usage) Since(
	ctx context.Context, org, position string, _ time.Time, tell func([]storage.Event, string) error,
) error {
	now := u.now()
	if now.Sub(u.asked[org]) < askEvery {
		return nil
	}
	used, limit, err := u.used(ctx, org)
	if err != nil {
		return fmt.Errorf("reading usage: %w", err)
	}
	month := storage.MonthOf(now)
	fact := strconv.Itoa(int(month)) + "/" + strconv.FormatInt(limit, 10)
	if limit > 0 && float64(used)*100 >= float64(limit)*nearPercent && fact != position {
		err = tell([]storage.Event{{
			Type: storage.UsageLimitNear, Subject: "usage/evaluations", Fact: fact, At: now,
			Data: map[string]any{
				"meter": "evaluations", "used": used, "limit": limit,
				"period": map[string]any{"start": month.Start(), "end": month.Start().AddDate(0, 1, 0)},
			},
		}}, fact)
	}
	if err == nil {
		u.asked[org] = now
	}
	return err
}
