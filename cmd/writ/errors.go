package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/alecthomas/kong"

	"writ/authoring/check"
	"writ/authoring/document"
	"writ/engine"
)

// whereHelpIs names the help of the verb whose flags were wrong, if there is one.
func whereHelpIs(err error) string {
	if parse := (*kong.ParseError)(nil); errors.As(err, &parse) && parse.Context.Selected() != nil {
		return "Run " + parse.Context.Selected().FullPath() + " --help to see its flags."
	}
	return "Run writ --help to see the verbs and flags."
}

// exitCode reports err to the user and returns its exit code.
func exitCode(w io.Writer, err error) int {
	var (
		invalid *inputError
		fields  *engine.InvalidError
		usage   *usageError
		placed  *document.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errReportedInvalid):
		return exitInvalid
	case errors.As(err, &placed):
		for _, p := range placed.Problems {
			check.WriteProblem(w, p)
		}
		return exitInvalid
	case errors.As(err, &usage):
		fmt.Fprintf(w, "writ: %v\n", err)
		return exitUsage
	case errors.As(err, &invalid), errors.As(err, &fields):
		fmt.Fprintf(w, "writ: %v\n", err)
		return exitInvalid
	default:
		fmt.Fprintf(w, "writ: %v\n", err)
		return exitFailed
	}
}

// usageError is a combination of flags that makes no sense.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

// inputError is a document that cannot be used.
type inputError struct {
	name string // of the file
	err  error
}

func (e *inputError) Error() string { return e.name + ": " + e.err.Error() }

func (e *inputError) Unwrap() error { return e.err }

// problem returns the cause of an [inputError], for a line that names the document
// already.
func problem(err error) error {
	if invalid := (*inputError)(nil); errors.As(err, &invalid) {
		return invalid.err
	}
	return err
}

// helpLast reads "help verb" as "verb --help".
func helpLast(args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	return append(slices.Clone(args[1:]), "--help")
}
