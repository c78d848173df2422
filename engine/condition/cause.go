package condition

import (
	"errors"
	"strings"
	"time"
)

// Cause is the reason why a condition could not be evaluated. Causes label a metric.
type Cause uint8

// The causes.
const (
	// CauseFunction: a function or a conversion has no result for its arguments.
	CauseFunction Cause = iota
	// CauseMissing: the intent lacks a metadata key or the cost, or a counter is not known yet.
	CauseMissing
	// CauseNotDecimal: a metadata value that is compared with a number is not a decimal.
	CauseNotDecimal
	// CauseWork: together, the conditions of the intent have done too much work.
	CauseWork
	// CauseBroken: the stored condition does not compile, or it names a list that does not exist.
	CauseBroken
	// CauseTime: the request ended while the condition was running. Such an intent is not decided.
	CauseTime

	// Causes is the number of causes.
	Causes = iota
)

// String returns the cause's name in the metrics.
func (c Cause) String() string {
	return [Causes]string{"function", "missing", "not_decimal", "work", "broken", "time"}[c]
}

// CauseCounts has the number of conditions that could not be evaluated for each [Cause].
type CauseCounts [Causes]int

// Total returns the sum of the counts.
func (c CauseCounts) Total() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// EvalError says why a condition could not be evaluated. It holds no value of the intent.
type EvalError struct {
	Cause Cause
	// Field is the part of the intent that caused the error, such as "cost" or "metadata.env". The
	// condition names it. It is empty if there is no such part or if the condition computes it.
	Field   string
	message string
}

// Error implements error.
func (e *EvalError) Error() string { return e.message }

var (
	// ErrTooMuchWork is the error of a condition that cannot run, because the other conditions of
	// its evaluation used up the work.
	ErrTooMuchWork = &EvalError{CauseWork, "", "the conditions of the rules do too much together"}
	// ErrBroken is the error of a stored condition that does not compile.
	ErrBroken = &EvalError{CauseBroken, "", "the stored condition does not compile"}

	errNoResult   = &EvalError{CauseFunction, "", "a function or a conversion has no result for what it was given"}
	errNoSuchKey  = &EvalError{CauseMissing, "", "no such key"}
	errNoCost     = missing(fields[Cost].name, "the intent has no cost")
	errNoCount    = missing("", "nothing was counted")
	errNotDecimal = &EvalError{CauseNotDecimal, "", "a metadata value that is compared with a number is not a decimal"}
	errNoList     = &EvalError{CauseBroken, "", "there is no such list"}
	errNoTexts    = &EvalError{CauseBroken, "", "the list is a document, not texts"}
	// errNoSide is the error of a comparison with the resource whose side is not set.
	errNoSide = &EvalError{CauseFunction, "", "the condition is neither for a block nor for an allowance"}
)

// missing returns the error of an intent that lacks a field or a key that the condition names.
func missing(field, what string) *EvalError {
	return &EvalError{CauseMissing, field, errNoSuchKey.message + ": " + what}
}

// filling returns the error of a counter that is not known until a time.
func filling(until time.Time) *EvalError {
	return &EvalError{CauseMissing, "", fillingText + until.UTC().Format(time.RFC3339)}
}

const fillingText = "the counter of a new rule is being filled from the history, until about "

// IsFilling reports whether a counter is not known yet. The message says until when.
func (e *EvalError) IsFilling() bool { return strings.HasPrefix(e.message, fillingText) }

// notDecimal returns the error of a metadata value that is compared with a number. The error names
// the value's key if f is a metadata key.
func notDecimal(f Field) *EvalError {
	if !f.isMetadata() {
		return errNotDecimal
	}
	return &EvalError{CauseNotDecimal, f.Label(), errNotDecimal.message}
}

// missing returns the error of an intent that lacks f.
func (f Field) missing() *EvalError {
	switch f.row().owner {
	case Cost:
		return errNoCost
	case MetadataValue:
		return missing(f.Label(), f.Path()+"."+f.Key)
	}
	return missing(f.Label(), f.Path())
}

// Recorded returns the error of a condition from its cause and field, as a row of the history has them.
func Recorded(cause, field string) *EvalError {
	for c := range Cause(Causes) {
		if c.String() == cause {
			return &EvalError{c, field, [Causes]string{errNoResult.message, errNoSuchKey.message, errNotDecimal.message,
				ErrTooMuchWork.message, ErrBroken.message, ErrTooMuchWork.message}[c]}
		}
	}
	return errNoResult
}

// Diagnose returns err as an EvalError, which holds no value of the intent.
func Diagnose(err error) *EvalError {
	if e, ok := errors.AsType[*EvalError](err); ok {
		return e
	}
	return errNoResult
}

// CauseOf returns the cause of err, the error of a condition.
func CauseOf(err error) Cause { return Diagnose(err).Cause }
