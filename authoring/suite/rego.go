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

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

var regoPackage = regexp.MustCompile(`(?m)^package[ \t]+([^\s#]+)`)

// testsBeside reads the files with Rego tests in the directory of a file.
func (l *Loader) testsBeside(file string) (files []rego.File, err error) {
	list := l.Glob
	if list == nil {
		list = filepath.Glob
	}
	names, err := list(filepath.Join(filepath.Dir(file), "*_test.rego"))
	if err != nil {
		return nil, fmt.Errorf("looking for tests in Rego beside %s: %w", file, err)
	}
	for _, name := range names {
		data, err := l.read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, rego.File{Name: name, Source: string(data)})
	}
	return files, nil
}

// moduleTests returns the Rego files that rules name, and the tests beside them: the files in the
// package of such a file, in that package with _test appended, or below one of the two.
func (l *Loader) moduleTests(rules []source) (modules, tests []rego.File, err error) {
	read := map[string]bool{}
	for _, rule := range rules {
		f, ok := rule.doc.RegoFile()
		if !ok {
			continue
		}
		modules = append(modules, rego.File{Name: f.Name, Source: f.Source})
		beside, err := l.testsBeside(f.Name)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range beside {
			if !read[t.Name] && ofRules(t, []source{rule}) {
				read[t.Name] = true
				tests = append(tests, t)
			}
		}
	}
	return modules, tests, nil
}

// ofRules reports whether a file has tests of a Rego file that one of the rules names.
func ofRules(test rego.File, rules []source) bool {
	found := regoPackage.FindStringSubmatch(test.Source)
	return found != nil && slices.ContainsFunc(rules, func(rule source) bool {
		f, _ := rule.doc.RegoFile()
		pkg, ok := rego.PackageOf(f.Source)
		return ok && (belongs(found[1], pkg) || belongs(found[1], pkg+"_test"))
	})
}

// regoTests reads the files with Rego tests in a policy's directory. It skips tests of other policies
// and tests of the rules' own Rego files.
func (l *Loader) regoTests(p source, rules []source) (files []rego.File, err error) {
	beside, err := l.testsBeside(p.file)
	if err != nil {
		return nil, err
	}
	own := rego.TestPackage(p.policy.PolicyID)
	for _, f := range beside {
		other := regoPackage.FindStringSubmatch(f.Source)
		if other != nil && strings.HasPrefix(other[1], rego.PackageName("")) && !belongs(other[1], own) ||
			ofRules(f, rules) {
			continue
		}
		files = append(files, f)
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
	if err := runModuleTests(ctx, suites, o, report); err != nil {
		return err
	}
	for _, r := range all {
		s := r.suite.subject
		results, err := rego.RunTests(ctx, s.doc, s.rules, s.conditions.Lists, r.intents, r.suite.rego,
			s.libraries()...)
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

// runModuleTests runs the tests of the Rego files of rules, each file once for all suites with the
// same rules.
func runModuleTests(ctx context.Context, suites []*Suite, o Options, report *Report) error {
	ran := map[string]bool{}
	for _, s := range suites {
		key := fmt.Sprint(s.modules, s.moduleTests, s.subject.listed())
		if len(s.moduleTests) == 0 || ran[key] {
			continue
		}
		ran[key] = true
		r := regoSuite{suite: s}
		results, err := rego.RunModuleTests(ctx, s.subject.conditions.Lists,
			append(s.subject.libraryFiles(), s.modules...), s.moduleTests)
		if err != nil {
			return r.located(err)
		}
		for i := range results {
			if result := r.result(&results[i]); o.selects(&result) {
				report.Results = append(report.Results, result)
			}
		}
	}
	return nil
}

// libraryFiles returns the modules of the libraries that the rules may import.
func (s *subject) libraryFiles() (files []rego.File) {
	for _, l := range s.libraries() {
		for _, name := range l.Files() {
			files = append(files, rego.File{Name: l.File(name), Source: l.Modules[name]})
		}
	}
	return files
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
		r.intents[name] = &engine.Input{Intent: in, DecidedAt: s.now,
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
			File:    cmp.Or(m.File, slices.Concat(r.suite.rego, r.suite.moduleTests)[0].Name),
			Place:   document.Place{Line: max(m.Line, 1), Column: max(m.Column, 1)},
			Message: m.Message, Source: r.line(m.File, m.Line),
		})
	}
	return found
}

func (r *regoSuite) line(file string, n int) string {
	for _, f := range slices.Concat(r.suite.rego, r.suite.modules, r.suite.moduleTests) {
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
