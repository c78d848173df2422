package main

import (
	"context"
	"fmt"

	"writ.example/writ/authoring/check"
)

type checkCmd struct {
	Files     []string `arg:"" name:"files" help:"Files of policies, rules, lists, intents and suites, in YAML or JSON, or directories of them; what a file holds is told by its members. - is standard input."`
	Libraries string   `placeholder:"DIR" help:"Libraries that the rules import: a directory for each, with its .rego files."`
	Strict    bool     `help:"Fail on warnings, too."`
	JSON      bool     `name:"json" help:"Print a JSON object for each problem and each warning, and nothing else."`
}

func (c *checkCmd) Help() string {
	return `Validates files exactly as the service does: members, types, globs, CEL and Rego
conditions. Prints every problem as file:line:column: field: message, with the line
and a caret; exits 3 when a file is invalid. Warns of what is valid and may do other
than its author means; with --strict a warning is exit code 1. The rules of all files
are looked at together, as those of one organization.

  writ check examples/policies/*.yaml examples/rules.yaml
  writ check --strict policies

In YAML a comment at the end of the line, or above it, silences a warning:

  condition: {metadata.ticket: {$exists: false}}  # writ:ignore unguarded-key a ticket is optional

With --json each line has file, line, column, severity (error or warning), rule (of
the warning), document, field, message and instead.`
}

func (c *checkCmd) Run(_ context.Context, s streams) error {
	files, err := documentFiles(c.Files)
	if err != nil {
		return err
	}
	o, _, err := conditionsWith(c.Libraries)
	if err != nil {
		return err
	}
	checker := check.Checker{Conditions: o, Read: func(name string) ([]byte, error) {
		data, err := readInput(s, name)
		return data, problem(err)
	}}
	var errs, warnings bool
	for _, r := range checker.Files(files) {
		errs, warnings = errs || r.Has("error"), warnings || r.Has("warning")
		if !c.JSON {
			r.Write(s.out)
		} else if err := r.WriteJSON(s.out); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	switch {
	case errs:
		return errReportedInvalid
	case c.Strict && warnings:
		return errReported
	}
	return nil
}
