package condition

import (
	"errors"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Cause is why a condition could not be evaluated. Causes label a metric.
type Cause uint8

// The causes.
const (
	// CauseFunction: a function or a conversion has no result for what it was given.
	CauseFunction Cause = iota
	// CauseMissing: the intent lacks a metadata key or a cost.
	CauseMissing
	// CauseNotDecimal: a metadata value that is compared with a number is none.
	CauseNotDecimal
	// CauseWork: the conditions of the intent have done or taken too much together.
	CauseWork
	// CauseBroken: the stored condition does not compile, or names a list that is not there.
	CauseBroken

	// Causes is how many there are.
	Causes = iota
)

// String returns the cause's name in the metrics.
func (c Cause) String() string {
	return [Causes]string{"function", "missing", "not_decimal", "work", "broken"}[c]
}

// CauseCounts counts conditions that could not be evaluated, by [Cause].
type CauseCounts [Causes]int

// Total is how many they are together.
func (c CauseCounts) Total() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// EvalError says why a condition could not be evaluated, in words that hold no
// value of the intent.
type EvalError struct {
	Cause   Cause
	message string
}

// Error implements error.
func (e *EvalError) Error() string { return e.message }

// ErrTooMuchWork is the error of a condition that is left too little work or time
// by the others of its evaluation.
var ErrTooMuchWork = errors.New("the conditions of the rules do too much together")

// ErrBroken is the error of a stored condition that does not compile.
var ErrBroken = errors.New("the stored condition does not compile")

// errNoList is the error of a condition that names a list which is not there: it is as
// broken as one that does not compile.
var errNoList = errors.New("there is no such list")

// errNoSide is the error of what would ask the resource without knowing what for.
var errNoSide = errors.New("the condition is neither for a block nor for an allowance")

// absentError is of a field that the intent lacks and the condition names.
type absentError struct{ what string }

func (e *absentError) Error() string { return "no such key: " + e.what }

// noSuchKey begins CEL's own error of a missing key, which has no type. A condition
// can have taken the key from the intent.
const noSuchKey = "no such key"

// CauseOf returns why a condition ended in err.
func CauseOf(err error) Cause {
	switch {
	case errors.Is(err, ErrTooMuchWork):
		return CauseWork
	case errors.Is(err, errNoDecimal):
		return CauseNotDecimal
	case errors.Is(err, ErrBroken), errors.Is(err, errNoList):
		return CauseBroken
	case strings.HasPrefix(err.Error(), noSuchKey):
		return CauseMissing
	}
	return CauseFunction
}

// Diagnose returns err, of a condition, without what it may hold of the intent.
func Diagnose(err error) *EvalError {
	e := &EvalError{Cause: CauseOf(err)}
	var absent *absentError
	switch {
	case e.Cause == CauseMissing && errors.As(err, &absent):
		e.message = absent.Error()
	case e.Cause == CauseMissing:
		e.message = noSuchKey
	case e.Cause == CauseNotDecimal:
		e.message = errNoDecimal.Error()
	case e.Cause == CauseWork:
		e.message = ErrTooMuchWork.Error()
	case errors.Is(err, errNoList):
		e.message = errNoList.Error()
	case e.Cause == CauseBroken:
		e.message = ErrBroken.Error()
	default:
		e.message = "a function or a conversion has no result for what it was given"
	}
	return e
}

// missing is the error of CEL where the intent lacks f.
func (f Field) missing() ref.Val {
	switch f.row().owner {
	case Cost:
		return noCost
	case MetadataValue:
		return types.WrapErr(&absentError{f.Path() + "." + f.Key})
	}
	return types.WrapErr(&absentError{f.Path()})
}

// What is the same of every intent. Errors of CEL are immutable.
var (
	noCost      = types.WrapErr(&absentError{"the intent has no cost"})
	tooMuchWork = types.WrapErr(ErrTooMuchWork)
	notDecimal  = types.WrapErr(errNoDecimal)
	noCount     = types.WrapErr(&absentError{"nothing was counted"})
	noSide      = types.WrapErr(errNoSide)
	noList      = types.WrapErr(errNoList)
)
