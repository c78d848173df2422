package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// streams is what a verb reads and writes; standard output carries results,
// standard error everything else.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// say prints a line of a result.
func (s streams) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// readInput reads the named file, or standard input when it is "-".
func readInput(s streams, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(s.in)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, &inputError{name: name, err: errors.Unwrap(err)}
	}
	return data, nil
}
