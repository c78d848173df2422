package decision

import (
	"context"

	"writ/engine"
)

// SessionError is why the session of an intent could not be loaded.
type SessionError struct{ Err error }

// Error implements error.
func (e *SessionError) Error() string { return "the session of an intent: " + e.Err.Error() }

// Unwrap returns what went wrong.
func (e *SessionError) Unwrap() error { return e.Err }

// session loads the session of an intent, if it names one.
func (b *batch) session(ctx context.Context, in *engine.Intent) (engine.InSession, error) {
	if in.SessionID == "" {
		return engine.InSession{}, nil
	}
	s, err := b.cfg.Sets.Session(ctx, b.who.Slot, b.who.Organization, in.SessionID)
	if err != nil {
		return engine.InSession{}, &SessionError{err}
	}
	return engine.InSession{CompiledSession: s, Expired: s.Expired(b.cfg.Now())}, nil
}
