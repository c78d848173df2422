package core

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is how long a reason is silent after it was logged.
const logEvery = 10 * time.Second

// failureLog logs failures at a bounded rate: under load there are thousands
// that say the same.
type failureLog struct {
	log *slog.Logger

	mu     sync.Mutex
	silent map[Reason]silence
}

// silence is what became of a reason since it was logged.
type silence struct {
	until      time.Time
	suppressed int
}

func newFailureLog(log *slog.Logger) *failureLog {
	return &failureLog{log: log, silent: make(map[Reason]silence)}
}

// failed logs err unless its reason was logged a moment ago. The breaker tells
// itself when it opens.
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
