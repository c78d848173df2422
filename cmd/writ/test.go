package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"writ.example/writ/authoring/suite"
)

type testCmd struct {
	Paths     []string `arg:"" optional:"" name:"paths" help:"Suites, or directories that are searched for *_test.yaml, *_test.yml and *_test.json; this directory where none is given."`
	Select    string   `name:"run" placeholder:"REGEX" help:"Run only the cases whose suite/test/case matches."`
	Coverage  bool     `help:"Also show which checks, patterns, rules and conditions the cases reached."`
	Threshold float64  `placeholder:"PERCENT" help:"Fail if one of the three numbers of --coverage is below. Implies --coverage."`
	Format    string   `default:"text" enum:"text,json,junit" help:"How the report is written: text, json or junit."`
	Libraries string   `placeholder:"DIR" help:"Libraries that the rules import: a directory for each, with its .rego files."`
	Watch     bool     `help:"Run suites again when a file of theirs changes, until interrupted."`
	Update    bool     `help:"Rewrite the wanted decision and codes of failing cases as they were decided; comments stay."`
	Rego      bool     `help:"Decide every case by the prepared Rego of the policy, too; a difference fails, and so does a rule that Rego cannot say, unless it silences no-rego."`
}

func (c *testCmd) Help() string {
	return `Runs suites of tests of policies and rules, offline and with the engine of the
service: docs/testing.md has the format. Prints each case that fails with what was
decided, what was wanted and why, then a line a suite.

Exits 0 when every case holds, 1 when one fails or coverage is under the threshold,
2 on a usage error and 3 when a file is invalid or there is no test.

  writ test examples
  writ test examples/payments_test.yaml --run cap --rego --coverage`
}

func (c *testCmd) Validate() error {
	if c.Threshold < 0 || c.Threshold > 100 {
		return fmt.Errorf("--threshold: got %v, want 0 to 100", c.Threshold)
	}
	if c.Watch && (c.Update || c.Format != "text") {
		return errors.New("--watch: goes with neither --update nor another --format than text")
	}
	if _, err := regexp.Compile(c.Select); err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	return nil
}

func (c *testCmd) Run(ctx context.Context, s streams) error {
	if c.Watch {
		return c.watch(ctx, s)
	}
	paths, err := suite.Paths(c.Paths)
	if err != nil {
		return reportProblems(s, err)
	}
	o, _, err := conditionsWith(c.Libraries)
	if err != nil {
		return err
	}
	return c.once(ctx, s, &suite.Loader{Libraries: o.Libraries}, paths)
}

// once reads the suites in files and runs them once.
func (c *testCmd) once(ctx context.Context, s streams, l *suite.Loader, paths []string) error {
	var suites []*suite.Suite
	var invalid error
	for _, path := range paths {
		read, err := l.Load(path)
		if err := reportProblems(s, err); errors.Is(err, errReportedInvalid) {
			invalid = err
		} else if err != nil {
			return err
		}
		suites = append(suites, read...)
	}
	report, err := suite.Run(ctx, suites, c.options())
	if err != nil {
		return reportProblems(s, err)
	}
	if len(report.Results) == 0 {
		if invalid == nil {
			fmt.Fprintln(s.err, "writ: there is no test to run")
		}
		return errReportedInvalid
	}
	if c.Update {
		return cmp.Or(invalid, c.update(ctx, s, l, suites, report))
	}
	if err := c.write(s, report); err != nil {
		return err
	}
	return cmp.Or(invalid, c.verdict(s, report))
}
