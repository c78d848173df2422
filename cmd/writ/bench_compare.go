package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"writ.example/writ/bench"
)

type benchCompareCmd struct {
	A string `arg:"" help:"Raw data of the base."`
	B string `arg:"" help:"Raw data in question."`
}

func (c *benchCompareCmd) Help() string {
	return `Compares what writ bench wrote at two times, with the same work: medians over paired
rounds. A figure is a regression if it is worse in every pair, if its median is beyond every
round of A, and if it differs by more than 2 % and more than A/A. Anything else is noise.
The exit code is 99 on a regression, and 3 if others used the machine in every round.

Two times differ in more than the program: for a verdict on two binaries run them in the
same rounds, with writ bench --peer FILE, or with writ bench guard.

  writ bench compare before.jsonl after.jsonl`
}

func (c *benchCompareCmd) Run(_ context.Context, s streams) error {
	a, err := readData(c.A)
	if err != nil {
		return err
	}
	b, err := readData(c.B)
	if err != nil {
		return err
	}
	got, err := bench.Compare(a, b)
	if err != nil {
		return &inputError{name: c.B, err: err}
	}
	if err := got.Print(s.out); err != nil {
		return err
	}
	switch worse := got.Worse(); {
	case got.Disturbed:
		return &codeError{exitDisturbed, errors.New("others used the machine in every round")}
	case len(worse) > 0:
		return &codeError{exitExceeded, errors.New(strings.Join(worse, "; "))}
	}
	return nil
}

// readData reads raw data that writ bench wrote.
func readData(name string) (*bench.Data, error) {
	f, err := os.Open(name) //nolint:gosec // the user chose the name
	if err != nil {
		return nil, &inputError{name: name, err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // the file was only read
	d, err := bench.Read(f)
	if err != nil {
		return nil, &inputError{name: name, err: err}
	}
	return d, nil
}
