package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
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

// confirm asks a question on the terminal. The error of a no is nothing, such as "nothing is pushed". Where
// it cannot ask, the user has to say --yes to do it.
func confirm(s streams, question, do, nothing string) error {
	in, ok := s.in.(*os.File)
	if !ok || !isatty.IsTerminal(in.Fd()) {
		return &usageError{"this is no terminal to ask on: want --yes to " + do}
	}
	fmt.Fprintf(s.err, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n') // no answer means no
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New(nothing)
	}
	return nil
}
