package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/diff"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/workspace"
)

type fmtCmd struct {
	Check bool     `xor:"instead" help:"Write nothing; exit 1 if a file is not in canonical form."`
	Diff  bool     `xor:"instead" help:"Write nothing; print what would change."`
	Paths []string `arg:"" name:"path" help:"Files, or directories whose .yaml, .yml, .json and .rego files to format; - is standard input."`
}

func (c *fmtCmd) Help() string {
	return `Writes policies, rules and intents in canonical form and prints the names of the
files that changed: members in the order of the reference, conditions and actions
as objects, indentation of two spaces. Comments stay, and no document changes its
meaning: a file that would lose a comment is not written. Rego is written as opa fmt
does, in .rego files and in the conditions of rules; there a text on one line stays
on it. Exits 3 when a file cannot be read or written.

  writ fmt policies rules.yaml
  writ fmt --check .`
}

// Run formats every file. If a file cannot be read, Run formats the other files.
func (c *fmtCmd) Run(_ context.Context, s streams) error {
	names, err := documentFiles(c.Paths, ".rego")
	if err != nil {
		return err
	}
	var invalid, changed bool
	for _, name := range names {
		differs, err := c.format(s, name)
		if err != nil {
			fmt.Fprintf(s.err, "writ: %v\n", err)
		}
		invalid, changed = invalid || err != nil, changed || differs
	}
	switch {
	case invalid:
		return errReportedInvalid
	case changed && (c.Check || c.Diff):
		return errReported
	}
	return nil
}

// format formats a file. It reports whether the file was not in canonical form.
func (c *fmtCmd) format(s streams, name string) (differs bool, err error) {
	data, err := readInput(s, name)
	if err != nil {
		return false, err
	}
	out, err := document.Format(name, data)
	if err != nil {
		return false, err
	}
	differs = !bytes.Equal(data, out)
	switch {
	case c.Diff:
		_, err = s.out.Write(diff.Diff(name, data, name+" (formatted)", out))
	case name == "-" && !c.Check:
		_, err = s.out.Write(out)
	case differs:
		if fmt.Fprintln(s.out, name); !c.Check {
			err = workspace.WriteFile(name, out)
		}
	}
	return differs, err
}

// cause returns an error about a file without the name of the file.
func cause(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}
