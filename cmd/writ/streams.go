package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// streams are the input and the outputs of a verb. Standard output gets the results, and
// standard error gets everything else.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// say prints a line to standard output.
func (s streams) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// readInput reads a file. "-" is standard input.
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
