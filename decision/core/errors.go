package core

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Reason says why the core did not decide. Reasons are stable, because they are label values of
// the metrics.
type Reason string

const (
	// Unreachable means that the core could not be connected to, or closed the connection
	// early.
	Unreachable Reason = "unreachable"
	// Timeout means that the core took too long.
	Timeout Reason = "timeout"
	// Status means that the answer is neither a 200 nor an error of the evaluation. A redirect
	// is an example.
	Status Reason = "status"
	// Answer means that the answer is a 200 but not a decision.
	Answer Reason = "answer"
	// Evaluation means that the core could not evaluate a policy or a rule.
	Evaluation Reason = "evaluation"
	// Undefined means that the core has no decision for this policy with these rules. It has
	// another version of them, or none.
	Undefined Reason = "undefined"
	// Open means that the breaker is open and the core was not asked.
	Open Reason = "breaker_open"
)

// reasons returns every Reason.
func reasons() []Reason {
	return []Reason{Unreachable, Timeout, Status, Answer, Evaluation, Undefined, Open}
}

// counts reports whether the breaker counts r as a failure.
func (r Reason) counts() bool { return r != Evaluation && r != Undefined && r != Open }

// Error says why the core made no decision. It never quotes the core's answer or the URL.
type Error struct {
	Reason Reason
	after  time.Duration
	err    error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// RetryAfter returns how long to wait before the next question. It returns 0 if the core needs
// another export first.
func (e *Error) RetryAfter() time.Duration { return e.after }

// Unanswered reports whether the core gave no answer: it could not be reached, it took too long, or
// the breaker spared it.
func (e *Error) Unanswered() bool {
	return e.Reason == Unreachable || e.Reason == Timeout || e.Reason == Open
}

// failure returns an [*Error] with a reason and a text.
func failure(reason Reason, format string, args ...any) *Error {
	e := &Error{Reason: reason, err: fmt.Errorf(format, args...)}
	if reason != Evaluation && reason != Undefined {
		e.after = time.Second
	}
	return e
}

// broken returns the error for a question that got no complete answer. ctx is the caller's.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // the caller left, and the core may be healthy
	}
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout() {
		return failure(Timeout, "no answer in time")
	}
	return failure(Unreachable, "%w", cause(err))
}
