package condition

import "errors"

// Cause is the reason why a condition could not be evaluated. Causes label a metric.
type Cause uint8

// The causes.
const (
	// CauseFunction: a function or a conversion has no result for its arguments.
	CauseFunction Cause = iota
	// CauseMissing: the intent lacks a metadata key or the cost.
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

// EvalError says why a condition could not be evaluated. Its text holds no value of the intent.
type EvalError struct {
	Cause   Cause
	message string
}

// Error implements error.
func (e *EvalError) Error() string { return e.message }

var (
	// ErrTooMuchWork is the error of a condition that cannot run, because the other conditions of
	// its evaluation used up the work.
	ErrTooMuchWork = &EvalError{CauseWork, "the conditions of the rules do too much together"}
	// ErrBroken is the error of a stored condition that does not compile.
	ErrBroken = &EvalError{CauseBroken, "the stored condition does not compile"}

	errNoResult   = &EvalError{CauseFunction, "a function or a conversion has no result for what it was given"}
	errNoSuchKey  = &EvalError{CauseMissing, "no such key"}
	errNoCost     = missing("the intent has no cost")
	errNoCount    = missing("nothing was counted")
	errNotDecimal = &EvalError{CauseNotDecimal, "a metadata value that is compared with a number is not a decimal"}
	errNoList     = &EvalError{CauseBroken, "there is no such list"}
	// errNoSide is the error of a comparison with the resource whose side is not set.
	errNoSide = &EvalError{CauseFunction, "the condition is neither for a block nor for an allowance"}
)

// missing returns the error of an intent that lacks a field or a key that the condition names.
func missing(what string) *EvalError {
	return &EvalError{CauseMissing, errNoSuchKey.message + ": " + what}
}

// missing returns the error of an intent that lacks f.
func (f Field) missing() *EvalError {
	switch f.row().owner {
	case Cost:
		return errNoCost
	case MetadataValue:
		return missing(f.Path() + "." + f.Key)
	}
	return missing(f.Path())
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
