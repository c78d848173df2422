package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// sessionGrace is the time between a session's expiry and its removal. Before the removal, an
// intent with this session is denied as expired. After it, the session is unknown.
const sessionGrace = 24 * time.Hour

// PutSession stores a new session. It returns storage.ErrNotFound if org has no policy with the
// session's PolicyID. It returns a *storage.LimitError if org already has maxPending sessions.
func (r *Registry) PutSession(ctx context.Context, org string, s *engine.Session) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		if _, err := newest(tx, org, s.PolicyID); err != nil {
			return err
		}
		if err := recount(tx, org, func(c *storage.Counts) error {
			return raise(&c.Sessions, 1, "sessions", maxPending)
		}); err != nil {
			return err
		}
		return storage.Sessions.Put(tx, org, s)
	})
}

// Session returns the session with an id, or storage.ErrNotFound.
func (r *Registry) Session(ctx context.Context, org, id string) (*engine.Session, error) {
	return get(ctx, r, storage.Sessions, org, id)
}

// ListSessions returns org's sessions by id, which is the order of their creation. The list
// includes closed sessions, and expired sessions that are not yet swept.
func (r *Registry) ListSessions(
	ctx context.Context, org string, p storage.Page,
) (sessions []*engine.Session, next string, err error) {
	return list(ctx, r, storage.Sessions, org, storage.ByID, p, all)
}

// CloseSession closes a session and returns the session, or storage.ErrNotFound. When it returns
// without an error, the session is closed on every replica. If the session is already closed, it
// changes nothing.
func (r *Registry) CloseSession(ctx context.Context, org, id string, at time.Time) (*engine.Session, error) {
	s, err := change(storage.WithUrgency(ctx), r, org, func(tx storage.Tx) (*engine.Session, error) {
		s, err := storage.Sessions.Get(tx, org, id)
		if err != nil || s.Status == engine.SessionClosed {
			return s, err
		}
		s.Status, s.ClosedAt = engine.SessionClosed, at
		return s, storage.Sessions.Put(tx, org, s)
	})
	if err != nil {
		return nil, err
	}
	if err := r.docs.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("waiting until every replica has heard that the session is closed: %w", err)
	}
	return s, nil
}

// SweepSessions removes org's sessions that expired more than sessionGrace before a time. It
// returns the number of removed sessions.
func (r *Registry) SweepSessions(ctx context.Context, org string, at time.Time) (removed int, err error) {
	return r.sweep(ctx, org, storage.SessionKind, at.Add(-sessionGrace), func(tx storage.Tx, n int) error {
		return recount(tx, org, func(c *storage.Counts) error { return raise(&c.Sessions, int64(-n), "sessions", 0) })
	})
}

// sweptAtOnce bounds the documents that one write of a sweep removes.
const sweptAtOnce = 1000

// sweep removes org's documents of a kind that expired before a time, and returns their number. Each write
// that removes n of them also does what count does.
func (r *Registry) sweep(
	ctx context.Context, org string, kind storage.Kind, before time.Time, count func(tx storage.Tx, n int) error,
) (removed int, err error) {
	end := storage.Time(before)
	q := storage.Query{Kind: kind, Org: org, Index: storage.ByExpiry, Bare: true}
	nothing := errors.New("nothing is left to remove")
	for {
		var gone []string
		err := r.update(ctx, org, func(tx storage.Tx) error {
			gone = gone[:0] // the store may run a write again
			err := tx.Scan(q, func(position []byte, d storage.Document) (bool, error) {
				if bytes.Compare(position, end) >= 0 {
					return false, nil
				}
				gone = append(gone, d.ID)
				return len(gone) < sweptAtOnce, nil
			})
			if err != nil {
				return err
			}
			if len(gone) == 0 {
				return nothing
			}
			for _, id := range gone {
				if err := tx.Delete(kind, org, id); err != nil {
					return err
				}
			}
			return count(tx, len(gone))
		})
		switch {
		case errors.Is(err, nothing):
			return removed, nil
		case err != nil:
			return removed, err
		}
		removed += len(gone)
	}
}
