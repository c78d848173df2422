package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/alecthomas/kong"

	"writ.example/writ/authoring/check"
	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/internal/printable"
)

// whereHelpIs says how to get help for the verb with the wrong flags. It returns "" if there is
// no such verb.
func whereHelpIs(err error) string {
	if parse := (*kong.ParseError)(nil); errors.As(err, &parse) && parse.Context.Selected() != nil {
		return "Run " + parse.Context.Selected().FullPath() + " --help to see its flags."
	}
	return "Run writ --help to see the verbs and flags."
}

// exitCode shows err to the user and returns the exit code for it.
func exitCode(w io.Writer, err error) int {
	var (
		invalid *inputError
		fields  *engine.InvalidError
		usage   *usageError
		untold  *untoldError
		placed  *document.Error
		other   *codeError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &other):
		exitCode(w, other.err)
		return other.code
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errReportedInvalid):
		return exitInvalid
	case errors.Is(err, errBlocked):
		return exitUntold
	case errors.As(err, &placed):
		for _, p := range placed.Problems {
			check.WriteProblem(w, p)
		}
		return exitInvalid
	case errors.As(err, &usage):
		fmt.Fprintf(w, "writ: %s\n", printable.Lines(err.Error()))
		return exitUsage
	case errors.As(err, &invalid), errors.As(err, &fields):
		fmt.Fprintf(w, "writ: %s\n", printable.Lines(err.Error()))
		return exitInvalid
	case errors.As(err, &untold):
		fmt.Fprintf(w, "writ: %s\n", printable.Lines(err.Error()))
		return exitUntold
	default:
		fmt.Fprintf(w, "writ: %s\n", printable.Lines(err.Error()))
		return exitFailed
	}
}

// usageError means that some flags do not fit together.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

// codeError is an error with an exit code of its own.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string { return e.err.Error() }

func (e *codeError) Unwrap() error { return e.err }

// untoldError means that a comparison has no result.
type untoldError struct{ err error }

func (e *untoldError) Error() string { return e.err.Error() }

func (e *untoldError) Unwrap() error { return e.err }

// inputError means that a document cannot be used.
type inputError struct {
	name string // the name of the file
	err  error
}

func (e *inputError) Error() string { return e.name + ": " + e.err.Error() }

func (e *inputError) Unwrap() error { return e.err }

// problem returns the cause of an [inputError]. It is for a line that already names the
// document.
func problem(err error) error {
	if invalid := (*inputError)(nil); errors.As(err, &invalid) {
		return invalid.err
	}
	return err
}

// helpLast turns "help verb" into "verb --help".
func helpLast(args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	return append(slices.Clone(args[1:]), "--help")
}
