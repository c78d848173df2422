package suite

import (
	"fmt"
	"io"

	"writ.example/writ/authoring/report"
	"writ.example/writ/engine"
)

// WriteText writes each failing case, and then one line for each suite.
func (r *Report) WriteText(w io.Writer) {
	for _, f := range r.Failed() {
		file, at := f.Place()
		fmt.Fprintf(w, "%s:%d:%d: FAIL %s / %s\n  %s\n", file, at.Line, at.Column, f.Suite.Name, f.Test, f)
		for _, line := range f.Explained {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
	for _, p := range r.NotCompared {
		fmt.Fprintf(w, "%s\n%s\n", p, p.Caret())
	}
	for _, s := range r.suites() {
		fmt.Fprintf(w, "%s  %s: %s: %s\n", s.verdict(len(r.NotCompared) > 0), s.path, s.name, s.count())
	}
	if r.Coverage != nil {
		r.Coverage.WriteText(w)
	}
}

// tally counts the results of one suite.
type tally struct {
	name, path    string
	cases, failed int
	// notCompared counts the cases that the prepared Rego could not decide.
	notCompared int
	results     []*Result
}

// verdict returns the first word of the suite's line. refused says that the run fails if Rego could
// not decide a case.
func (t *tally) verdict(refused bool) string {
	if t.failed > 0 || refused && t.notCompared > 0 {
		return "FAIL"
	}
	return "ok  "
}

func (t *tally) count() string {
	text := fmt.Sprintf("%d of %d hold", t.cases-t.failed, t.cases)
	if t.notCompared > 0 {
		text += fmt.Sprintf(", %d not compared with Rego", t.notCompared)
	}
	return text
}

// suites returns a tally for each suite, in the order of the report.
func (r *Report) suites() []*tally {
	var all []*tally
	by := map[*Suite]*tally{}
	for i := range r.Results {
		s := r.Results[i].Suite
		if by[s] == nil {
			by[s] = &tally{name: s.Name, path: s.Path}
			all = append(all, by[s])
		}
		t := by[s]
		t.cases++
		t.results = append(t.results, &r.Results[i])
		if !r.Results[i].Holds() {
			t.failed++
		}
		if r.Results[i].NotCompared != "" {
			t.notCompared++
		}
	}
	return all
}

type jsonReport struct {
	Tests    []jsonTest    `json:"tests"`
	Coverage *jsonCoverage `json:"coverage,omitzero"`
}

// jsonTest is the JSON of a case or a Rego test. Message says why it fails.
type jsonTest struct {
	Suite   string        `json:"suite"`
	Name    string        `json:"name"`
	Case    string        `json:"case"`
	OK      bool          `json:"ok"`
	Want    string        `json:"want"`
	Got     string        `json:"got"`
	Codes   []engine.Code `json:"codes"`
	Message string        `json:"message,omitzero"`
	// NotCompared says why the prepared Rego did not decide the case.
	NotCompared string `json:"not_compared,omitzero"`
}

// jsonCoverage is the JSON of the coverage. The numbers are fractions.
type jsonCoverage struct {
	Checks     float64 `json:"checks"`
	Rules      float64 `json:"rules"`
	Conditions float64 `json:"conditions"`
}

// WriteJSON writes the report as one object:
//
//	{"tests": [{"suite", "name", "case", "ok", "want", "got", "codes"}],
//	 "coverage": {"checks", "rules", "conditions"}}
//
// A failing test also has message. If the prepared Rego could not decide a test, the test has
// not_compared. The member coverage is present if coverage was requested. Its numbers are
// fractions.
func (r *Report) WriteJSON(w io.Writer) error {
	out := jsonReport{Tests: []jsonTest{}}
	for i := range r.Results {
		res := &r.Results[i]
		t := jsonTest{
			Suite: res.Suite.Name, Name: res.Test, Case: res.Name, OK: res.Holds(), Want: res.Want, Got: res.Got,
			Codes:       res.Codes,
			NotCompared: res.NotCompared,
		}
		if !res.Holds() {
			t.Message = res.String()
		}
		out.Tests = append(out.Tests, t)
	}
	if c := r.Coverage; c != nil {
		out.Coverage = &jsonCoverage{c.Checks.Fraction(), c.Rules.Fraction(), c.Conditions.Fraction()}
	}
	return report.WriteJSON(w, out)
}

// WriteJUnit writes the report as JUnit XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	var suites []*report.Suite
	for _, s := range r.suites() {
		suite := &report.Suite{Name: s.name, File: s.path}
		for _, res := range s.results {
			suite.Cases = append(suite.Cases, res.junit())
		}
		suites = append(suites, suite)
	}
	return report.WriteJUnit(w, suites...)
}

// junit returns the case. It is skipped if it passes in the engine, but Rego could not decide it.
func (r *Result) junit() report.Case {
	file, at := r.Place()
	c := report.Case{Class: r.Suite.Name, Name: r.Test, File: file, Line: at.Line}
	if r.Name != "" {
		c.Name += " (" + r.Name + ")"
	}
	switch {
	case r.Holds() && r.NotCompared != "":
		c.Skipped = &report.Message{Message: "not compared with Rego: " + r.NotCompared}
	case !r.Holds():
		c.Failure = &report.Message{Message: r.String()}
		for _, line := range r.Explained {
			c.Failure.Text += line + "\n"
		}
	}
	return c
}
