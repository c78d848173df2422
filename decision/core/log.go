package core

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is the shortest time between two log records with the same reason.
const logEvery = 10 * time.Second

// failureLog logs failures at a bounded rate. Under load, thousands of failures have the same
// reason.
type failureLog struct {
	log *slog.Logger

	mu     sync.Mutex
	silent map[Reason]silence
}

// silence says until when a reason is not logged, and how many failures were not logged.
type silence struct {
	until      time.Time
	suppressed int
}

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, silent: make(map[Reason]silence)}
}

// failed logs err, unless its reason was logged a moment ago. It does not log [Open], because
// the breaker itself logs when it opens.
func (l *failureLog) failed(ctx context.Context, err *Error, policyID string, version int64) {
	if err.Reason == Open {
		return
	}
	now := time.Now()
	l.mu.Lock()
	last := l.silent[err.Reason]
	if now.Before(last.until) {
		last.suppressed++
		l.silent[err.Reason] = last
		l.mu.Unlock()
		return
	}
	l.silent[err.Reason] = silence{until: now.Add(logEvery)}
	l.mu.Unlock()
	l.log.ErrorContext(ctx, "the evaluation core made no decision, the intent is refused",
		"reason", string(err.Reason), "error", err.Error(), "policy_id", policyID, "version", version,
		"unlogged_before", last.suppressed)
}
