package writ

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Guard asks whether the action may run, runs act only if it may, and records the outcome. It returns the
// results of act, or the error of [Client.Require]. It ignores an error of recording.
func Guard[T any](ctx context.Context, c *Client, in Intent, act func(context.Context) (T, error)) (T, error) {
	d, err := c.Require(ctx, in)
	return guarded(ctx, c, d, err, act)
}

// GuardWait is [Guard] for an action that may be held: it waits for the verdict, for at most timeout, and
// runs act once the action is approved. Without a verdict the error is the [Held].
func GuardWait[T any](
	ctx context.Context, c *Client, timeout time.Duration, in Intent, act func(context.Context) (T, error),
) (T, error) {
	d, err := c.Require(ctx, in)
	var held *Held
	if errors.As(err, &held) {
		if d, err = c.Wait(ctx, held, timeout); errors.Is(err, ErrPending) {
			err = held
		}
	}
	return guarded(ctx, c, d, err, act)
}

// guarded runs act unless err says why it must not run, and records the outcome.
func guarded[T any](
	ctx context.Context, c *Client, d Decision, err error, act func(context.Context) (T, error),
) (T, error) {
	if err == nil {
		err = d.Err()
	}
	if err != nil {
		var none T
		return none, err
	}
	record := Record{DecisionID: d.ID, Outcome: Failed} // also if act panics
	defer func() { _ = c.Record(context.WithoutCancel(ctx), record) }()
	v, err := act(ctx)
	if err == nil {
		record.Outcome = Executed
		if cost := d.Intent.Cost; cost != nil {
			record.AmountMinor, record.Currency = &cost.AmountMinor, cost.Currency
		}
	}
	return v, err
}

// Middleware returns a middleware that lets a request through only if its intent is allowed. intent makes
// the intent of a request. Otherwise the answer is a problem document:
//
//   - 400 if intent returns an error
//   - 403 for a deny
//   - 403 for a hold, with the id of the approval in X-Writ-Approval
//   - 503 if there is no decision
func (c *Client) Middleware(intent func(*http.Request) (Intent, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			in, err := intent(r)
			if err != nil {
				refuse(w, http.StatusBadRequest, "invalid_intent", "the request is no action that can be decided")
				return
			}
			_, err = c.Require(r.Context(), in)
			var denied *Denied
			var held *Held
			switch {
			case err == nil:
				next.ServeHTTP(w, r)
			case errors.As(err, &denied):
				refuse(w, http.StatusForbidden, "denied", denied.Decision.Explain())
			case errors.As(err, &held):
				w.Header().Set("X-Writ-Approval", held.Decision.ID)
				refuse(w, http.StatusForbidden, "held", held.Decision.Explain())
			default:
				refuse(w, http.StatusServiceUnavailable, "undecided",
					"there is no decision about the action, so it did not run")
			}
		})
	}
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": status, "code": code, "title": http.StatusText(status), "detail": detail,
	})
}
