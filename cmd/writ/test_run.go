package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"time"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/suite"
)

// watch runs the suites again whenever a file changes. If a file has mistakes, watch shows them
// and goes on.
func (c *testCmd) watch(ctx context.Context, s streams) error {
	shown := func(err error) error {
		if err = reportProblems(s, err); errors.Is(err, errReportedInvalid) {
			return nil
		}
		return err
	}
	w := suite.Watch{Roots: c.Paths, Libraries: c.Libraries, Every: c.options().Coverage, Problem: shown}
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

// reportProblems shows the problems in files.
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

// update rewrites the expected results of failing cases and prints a summary.
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

// verdict returns an error if a case fails, if a case was not compared with Rego, or if
// coverage is under the threshold.
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
