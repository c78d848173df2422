package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"writ/authoring/document"
	"writ/authoring/suite"
)

type testCmd struct {
	Paths     []string `arg:"" optional:"" name:"paths" help:"Suites, or directories that are searched for *_test.yaml, *_test.yml and *_test.json; this directory where none is given."`
	Select    string   `name:"run" placeholder:"REGEX" help:"Run only the cases whose suite/test/case matches."`
	Coverage  bool     `help:"Also show which checks, patterns, rules and conditions the cases came past."`
	Threshold float64  `placeholder:"PERCENT" help:"Fail where the lowest of the three numbers of --coverage, which this implies, is below."`
	Format    string   `default:"text" enum:"text,json,junit" help:"How the report is written: text, json or junit."`
	Watch     bool     `help:"Run again what a change of a file touches, until interrupted."`
	Update    bool     `help:"Rewrite what failing cases want, decision and codes, as they were decided; comments stay."`
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
	return c.once(ctx, s, new(suite.Loader), paths)
}

// once reads and runs the suites in files.
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

// watch runs the suites again whenever a file changes. What is wrong with a file is shown,
// and mended later.
func (c *testCmd) watch(ctx context.Context, s streams) error {
	shown := func(err error) error {
		if err = reportProblems(s, err); errors.Is(err, errReportedInvalid) {
			return nil
		}
		return err
	}
	w := suite.Watch{Roots: c.Paths, Every: c.options().Coverage, Problem: shown}
	w.Run = func(ctx context.Context, suites []*suite.Suite) error {
		started := time.Now()
		report, err := suite.Run(ctx, suites, c.options())
		if err != nil {
			return shown(err)
		}
		report.WriteText(s.out)
		s.say("%d cases in %v; waiting for changes", len(report.Results), time.Since(started).Round(time.Millisecond))
		return nil
	}
	return reportProblems(s, w.Until(ctx))
}

// reportProblems shows what is wrong with files.
func reportProblems(s streams, err error) error {
	var placed *document.Error
	var unreadable *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		return &inputError{name: unreadable.Path, err: unreadable.Err}
	case !errors.As(err, &placed):
		return err
	}
	for _, p := range placed.Problems {
		fmt.Fprintf(s.err, "%s\n%s\n", p, p.Caret())
	}
	return errReportedInvalid
}

func (c *testCmd) options() suite.Options {
	o := suite.Options{Rego: c.Rego, Coverage: c.Coverage || c.Threshold > 0}
	if c.Select != "" {
		o.Run = regexp.MustCompile(c.Select) // Validate has compiled it
	}
	return o
}

// update rewrites what failing cases want, and says what it did.
func (c *testCmd) update(
	ctx context.Context, s streams, l *suite.Loader, suites []*suite.Suite, r *suite.Report,
) error {
	rewrites, err := l.Update(ctx, suites, r)
	if err != nil {
		return err
	}
	var kept error
	for _, w := range rewrites {
		for _, change := range w.Changes {
			fmt.Fprintln(s.out, change)
		}
		for _, why := range w.Kept {
			fmt.Fprintln(s.out, why)
			kept = errReported
		}
		if w.Data == nil {
			continue
		}
		if err := os.WriteFile(w.Path, w.Data, 0o666); err != nil {
			return &inputError{name: w.Path, err: err}
		}
	}
	return kept
}

func (c *testCmd) write(s streams, r *suite.Report) error {
	switch c.Format {
	case "json":
		return r.WriteJSON(s.out)
	case "junit":
		return r.WriteJUnit(s.out)
	}
	r.WriteText(s.out)
	return nil
}

// verdict is an error where a case fails, or is not compared with Rego, or coverage is
// under the threshold.
func (c *testCmd) verdict(s streams, r *suite.Report) error {
	if r.Coverage != nil && 100*r.Coverage.Lowest() < c.Threshold {
		fmt.Fprintf(s.err, "writ: coverage is %.1f %%, under the threshold of %v %%\n", 100*r.Coverage.Lowest(),
			c.Threshold)
		return errReported
	}
	if len(r.Failed()) > 0 || len(r.NotCompared) > 0 {
		return errReported
	}
	return nil
}
