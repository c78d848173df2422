package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"writ/authoring/document"
	"writ/engine"
	"writ/engine/condition"
	"writ/rego"
)

var regoPackage = regexp.MustCompile(`(?m)^package[ \t]+([^\s#]+)`)

// regoTests reads the files with Rego tests in a policy's directory. It skips the tests of other
// policies.
func (l *Loader) regoTests(p source) (files []rego.File, err error) {
	list := l.Glob
	if list == nil {
		list = filepath.Glob
	}
	names, err := list(filepath.Join(filepath.Dir(p.file), "*_test.rego"))
	if err != nil {
		return nil, fmt.Errorf("looking for tests in Rego beside %s: %w", p.file, err)
	}
	own := rego.TestPackage(p.policy.PolicyID)
	for _, name := range names {
		data, err := l.read(name)
		if err != nil {
			return nil, err
		}
		other := regoPackage.FindSubmatch(data)
		if other != nil && strings.HasPrefix(string(other[1]), rego.PackageName("")) &&
			!belongs(string(other[1]), own) {
			continue
		}
		files = append(files, rego.File{Name: name, Source: string(data)})
	}
	return files, nil
}

// belongs reports whether the package called name is pkg or a package below pkg.
func belongs(name, pkg string) bool { return name == pkg || strings.HasPrefix(name, pkg+".") }

// regoSuite has the intents of all suites with the same subject. The Rego tests of the subject can
// use these intents.
type regoSuite struct {
	suite   *Suite // the suite to name in the results
	intents map[string]*engine.Input
}

// runRego runs the Rego tests of the suites' policies, once for each policy version with its rules.
func runRego(ctx context.Context, suites []*Suite, o Options, report *Report) error {
	var all []*regoSuite
	by := map[*subject]*regoSuite{}
	for _, s := range suites {
		if len(s.rego) == 0 {
			continue
		}
		if by[s.subject] == nil {
			by[s.subject] = &regoSuite{s, map[string]*engine.Input{}}
			all = append(all, by[s.subject])
		}
		if err := by[s.subject].addIntents(s); err != nil {
			return err
		}
	}
	for _, r := range all {
		results, err := rego.RunTests(ctx, r.suite.subject.doc, r.suite.subject.rules, r.suite.subject.lists, r.intents,
			r.suite.rego)
		if err != nil {
			return r.located(err)
		}
		for i := range results {
			if result := r.result(&results[i]); o.selects(&result) {
				report.Results = append(report.Results, result)
			}
		}
	}
	return ctx.Err()
}

// addIntents adds the intents of s. Two different intents with the same name are an error.
func (r *regoSuite) addIntents(s *Suite) error {
	for _, name := range slices.Sorted(maps.Keys(s.fixtures)) {
		in := s.fixtures[name]
		if have := r.intents[name]; have != nil && !reflect.DeepEqual(have.Intent, in) {
			p := s.doc.Problem("suite.intents."+name,
				fmt.Sprintf("%s has another intent %s, and tests in Rego of the policy see those of both: rename one",
					r.suite.Path, name))
			return &document.Error{Problems: []document.Problem{p}}
		}
		r.intents[name] = &engine.Input{Intent: in, DecidedAt: s.decidedAt(time.Time{}, in),
			Counts: engine.Alone(s.subject.set.Counters(), in)}
	}
	return nil
}

// located returns the mistakes in Rego tests as problems with places.
func (r *regoSuite) located(err error) error {
	var mistakes *condition.Error
	var unrendered *rego.UnrenderedError
	switch {
	case errors.As(err, &unrendered):
		all, _ := r.suite.subject.refused(err)
		return &all
	case !errors.As(err, &mistakes):
		return fmt.Errorf("running the tests in Rego of %s: %w", r.suite.subject.policySource.file, err)
	}
	found := new(document.Error)
	for _, m := range mistakes.Mistakes {
		found.Problems = append(found.Problems, document.Problem{
			File:    cmp.Or(m.File, r.suite.rego[0].Name),
			Place:   document.Place{Line: max(m.Line, 1), Column: max(m.Column, 1)},
			Message: m.Message, Source: r.line(m.File, m.Line),
		})
	}
	return found
}

func (r *regoSuite) line(file string, n int) string {
	for _, f := range r.suite.rego {
		if lines := strings.Split(f.Source, "\n"); f.Name == file && n > 0 && n <= len(lines) {
			return lines[n-1]
		}
	}
	return ""
}

// result returns the result of a Rego test.
func (r *regoSuite) result(t *rego.TestResult) Result {
	result := Result{
		Suite: r.suite, Test: t.Name, Want: string(rego.TestPassed), Got: string(t.Outcome), Codes: []engine.Code{},
		file: t.File, at: document.Place{Line: t.Line, Column: t.Column},
	}
	if t.Outcome == rego.TestFailed || t.Outcome == rego.TestErrored {
		result.problem("%s", t.Message)
		for line := range strings.Lines(t.Output) {
			result.Explained = append(result.Explained, strings.TrimSuffix(line, "\n"))
		}
	}
	return result
}
