package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Reason says why the core did not decide. Reasons are stable: they label the metrics.
type Reason string

const (
	// Unreachable is a core that cannot be connected to, or that broke off.
	Unreachable Reason = "unreachable"
	// Timeout is a core that took too long.
	Timeout Reason = "timeout"
	// Status is an answer that is neither a 200 nor an error of the evaluation,
	// a redirect for one.
	Status Reason = "status"
	// Answer is a 200 that is no decision.
	Answer Reason = "answer"
	// Evaluation is an error of a policy or a rule as the core evaluates it.
	Evaluation Reason = "evaluation"
	// Undefined is a core that has no decision for this policy with these rules: it has
	// another version of them, or none.
	Undefined Reason = "undefined"
	// Open is the breaker: the core was not asked.
	Open Reason = "breaker_open"
)

// reasons lists every Reason.
func reasons() []Reason {
	return []Reason{Unreachable, Timeout, Status, Answer, Evaluation, Undefined, Open}
}

// counts reports whether the breaker counts a failure for r.
func (r Reason) counts() bool { return r != Evaluation && r != Undefined && r != Open }

// Error tells why the core made no decision. It never quotes what the core
// answered, nor the URL.
type Error struct {
	Reason Reason
	after  time.Duration
	err    error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// RetryAfter returns when to ask again, or 0 if the core needs another export first.
func (e *Error) RetryAfter() time.Duration { return e.after }

// failure returns an [*Error].
func failure(reason Reason, format string, args ...any) *Error {
	e := &Error{Reason: reason, err: fmt.Errorf(format, args...)}
	if reason != Evaluation && reason != Undefined {
		e.after = time.Second
	}
	return e
}

// broken returns the error of a question without a whole answer. ctx is the caller's.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the caller left: the core may be well
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return failure(Timeout, "no answer in time")
	}
	return failure(Unreachable, "%w", cause(err))
}
