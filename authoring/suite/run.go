package suite

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// Options configures a run of suites.
type Options struct {
	// Run selects the cases whose [Result.ID] matches. Nil selects all cases.
	Run *regexp.Regexp
	// Rego says that the policy's prepared Rego must also decide every case.
	Rego bool
	// Coverage says that the run records which parts of policies and rules the cases reach.
	Coverage bool
}

// Report has the results of a run.
type Report struct {
	Results []Result
	// NotCompared has the reasons why the prepared Rego could not decide cases. A rule that cannot
	// be rendered in Rego gives one problem. If a comment in the rule suppresses [lint.NoRego], it
	// gives none.
	NotCompared []document.Problem
	// Coverage is nil unless coverage was requested.
	Coverage *Coverage
}

// Result is the result of a case or of a Rego test.
type Result struct {
	Suite *Suite
	// Test and Name are described at [Case]. A Rego test has no Name.
	Test, Name string
	Case       *Case // nil for a Rego test
	// Want and Got are decisions or "refused". For a Rego test, Want is "pass", and Got is a
	// [rego.TestOutcome].
	Want, Got string
	// Codes has the codes of the findings, sorted and without duplicates.
	Codes []engine.Code
	// Problems says why the case fails, one sentence for each reason. It is nil if the case passes.
	// Explained lists the findings and rules that differ from the wanted ones.
	Problems  []string
	Explained []string
	// NotCompared says why the prepared Rego could not decide the case. It is empty if Rego decided
	// the case or was not requested.
	NotCompared string

	file string // these fields are set for a Rego test
	at   document.Place
}

// Holds reports whether the case passes.
func (r *Result) Holds() bool { return len(r.Problems) == 0 }

// Failed returns the results of failing cases.
func (r *Report) Failed() (failed []*Result) {
	for i := range r.Results {
		if !r.Results[i].Holds() {
			failed = append(failed, &r.Results[i])
		}
	}
	return failed
}

// Place returns the case's file, and the place of its test or its row in this file.
func (r *Result) Place() (file string, at document.Place) {
	if r.Case == nil {
		return r.file, r.at
	}
	p := r.Suite.doc.Problem("suite."+r.Case.field, "")
	return p.File, p.Place
}

// ID returns the names of the suite, the test and the case, joined by slashes.
func (r *Result) ID() string {
	return strings.TrimSuffix(r.Suite.Name+"/"+r.Test+"/"+r.Name, "/")
}

func (o *Options) selects(r *Result) bool { return o.Run == nil || o.Run.MatchString(r.ID()) }

// Subject describes the case in the message of a failure, by its fixture and the values that it
// sets.
func (c *Case) Subject() string {
	if c.Name == "" {
		return c.Fixture
	}
	return c.Fixture + ", " + c.Name
}

// Wanted returns the decision and the sorted codes that the case wants. If the intent must be
// refused, the decision is deny. If any codes are accepted, the codes are nil.
func (c *Case) Wanted() (engine.Decision, []engine.Code) { return c.want.decision, c.want.codes }

// Policy returns the policy under test.
func (s *Suite) Policy() *engine.ActionPolicy { return s.subject.doc }

// Rules returns the rules under test, including inactive ones.
func (s *Suite) Rules() []engine.Rule { return s.subject.rules }

// Run decides the cases of suites. It also runs the Rego tests in the directories of the suites'
// policies. If a Rego test has a mistake, the error is a *[document.Error]. If ctx ends, the error
// is ctx's.
func Run(ctx context.Context, suites []*Suite, o Options) (*Report, error) {
	report := new(Report)
	var unsilenced document.Error
	var cover *coverage
	if o.Coverage {
		cover = newCoverage(suites)
	}
	for _, s := range suites {
		for _, c := range s.Cases {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			result := Result{Suite: s, Test: c.Test, Name: c.Name, Case: c}
			if !o.selects(&result) {
				continue
			}
			result.run(o)
			report.Results = append(report.Results, result)
			if c.refusal == nil {
				cover.add(c)
			}
			if result.NotCompared != "" {
				_ = unsilenced.Add(&s.subject.prepared().unsilenced)
			}
		}
	}
	report.NotCompared = unsilenced.Problems
	if err := runRego(ctx, suites, o, report); err != nil {
		return nil, err
	}
	var err error
	report.Coverage, err = cover.summary()
	return report, err
}

func (r *Result) run(o Options) {
	s, in, want := r.Suite.subject, r.Case.Input, r.Case.want
	if r.Case.refusal != nil {
		r.refused(r.Case.refusal, want)
		return
	}
	result := engine.Evaluate(s.policy, s.set, &in)
	r.Want, r.Got, r.Codes = want.text(), result.Decision.String(), codesOf(result)
	r.compare(want, result, s)
	if o.Rego {
		r.compareRego(result, &in, s)
	}
	if !r.Holds() {
		r.explain(s)
	}
}

// refused compares the error of an invalid intent with the wanted message. Such an intent is not
// evaluated.
func (r *Result) refused(err *engine.InvalidError, want expected) {
	r.Want, r.Got, r.Codes = refused, refused, []engine.Code{}
	if said := err.Error(); !strings.Contains(said, want.message) {
		r.problem("want a message with %q, it is %s", want.message, strings.TrimPrefix(said, "invalid: "))
	}
}

// codesOf returns the codes of the findings, sorted and without duplicates.
func codesOf(r engine.Result) []engine.Code {
	var codes []engine.Code
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	return sorted(codes)
}

// compare adds a problem for each difference between the result and the wanted result.
func (r *Result) compare(want expected, got engine.Result, s *subject) {
	if want.refused || got.Decision != want.decision || want.codes != nil && !slices.Equal(want.codes, r.Codes) {
		r.problem("want %s", want)
	}
	if want.rule != "" {
		if id := deciding(got); !slices.Contains(s.ruleCalled(want.rule), id) {
			by := "no rule decides"
			if id != "" {
				by = fmt.Sprintf("the rule %q decides", s.ruleName(id))
			}
			r.problem("%s, want the rule %q", by, want.rule)
		}
	}
	failed := got.ConditionErrors.Total()
	switch {
	case want.err == nil:
	case *want.err && failed == 0:
		r.problem("no condition is an error, want one")
	case !*want.err && failed > 0:
		r.problem("%d conditions are errors, want none", failed)
	}
}

// compareRego adds a problem if the prepared Rego decides differently. If the own Rego of a rule
// fails, the prepared Rego has no decision. The engine must then count an error, and must not
// allow.
func (r *Result) compareRego(got engine.Result, in *engine.Input, s *subject) {
	p := s.prepared()
	if p.query == nil {
		r.NotCompared = p.problems.Problems[0].String()
		return
	}
	decision, codes, err := p.query.Evaluate(in)
	switch {
	case err != nil && got.ConditionErrors.Total() > 0 && got.Decision != engine.Allow:
	case err != nil:
		r.problem("the prepared Rego has no decision: %v", err)
	case decision != got.Decision || !slices.Equal(sorted(codes), r.Codes):
		r.problem("the prepared Rego decides %s", outcome(decision.String(), codes))
	}
}

func (r *Result) problem(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// deciding returns the id of the rule that decides, or "" if no rule does.
func deciding(r engine.Result) (id string) {
	most := engine.Decision(0)
	for _, f := range r.Findings {
		if f.RuleID != "" && f.Outcome > most {
			id, most = f.RuleID, f.Outcome
		}
	}
	return id
}

// String formats the result on one line.
func (r *Result) String() string {
	if r.Case == nil {
		return fmt.Sprintf("%s = %s, want %s: %s", r.Test, r.Got, r.Want, strings.Join(r.Problems, "; "))
	}
	got := r.Got
	if r.Case.refusal == nil {
		got = outcome(r.Got, r.Codes)
	}
	return fmt.Sprintf("Evaluate(%s) = %s, %s", r.Case.Subject(), got, strings.Join(r.Problems, "; "))
}

func (w expected) text() string {
	if w.refused {
		return refused
	}
	return w.decision.String()
}

func (w expected) String() string {
	if w.codes == nil {
		return w.text()
	}
	return outcome(w.text(), w.codes)
}

// outcome formats a decision with its codes.
func outcome(decision string, codes []engine.Code) string {
	var texts []string
	for _, c := range codes {
		texts = append(texts, string(c))
	}
	return fmt.Sprintf("%s [%s]", decision, strings.Join(texts, ", "))
}
