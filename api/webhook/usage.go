package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"writ.example/writ/storage"
)

// Usage is the [Source] of events about organizations near their plan's limit of evaluations.
type Usage struct {
	used  func(ctx context.Context, org string) (used, limit int64, err error)
	now   func() time.Time
	asked map[string]time.Time
}

// NewUsage returns a source. used returns the organization's number of evaluations in this month
// and its limit. A limit of 0 means no limit. A nil now means time.Now.
func NewUsage(used func(ctx context.Context, org string) (used, limit int64, err error), now func() time.Time) *Usage {
	if now == nil {
		now = time.Now
	}
	return &Usage{used: used, now: now, asked: make(map[string]time.Time)}
}

// askEvery is the time between two reads of an organization's usage. Such a read costs more than
// a look-up.
const askEvery = 10 * time.Second

// nearPercent is the percentage of the limit at which the event is made.
const nearPercent = 80

// Name implements [Source].
func (u *Usage) Name() string { return "usage" }

// Wanted implements [Source].
func (u *Usage) Wanted(w *storage.Webhook) bool {
	return slices.Contains(w.Events, storage.UsageLimitNear)
}

// Since implements [Source]. The position has the month and the limit of the last event.
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
