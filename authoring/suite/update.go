package suite

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// Rewrite is a file of suites with the decisions of the last run in place of the old wants.
// Comments stay. The layout stays too, unless a list over several lines gets another length. The
// file then gets the canonical form.
type Rewrite struct {
	Path string
	Data []byte
	// Changes has a line for each changed want. Kept has a line for each failing case that could
	// not be rewritten, with the reason.
	Changes, Kept []string
}

// Update rewrites the wants of failing cases. It keeps a want if several cases share it and have
// different results. It also keeps the want if a case fails for another reason than its decision or
// codes. Data is nil if nothing was rewritten.
func (l *Loader) Update(ctx context.Context, suites []*Suite, report *Report) ([]Rewrite, error) {
	var all []Rewrite
	for _, path := range pathsOf(report.Failed()) {
		text, err := l.read(path)
		if err != nil {
			return nil, err
		}
		u := &updater{path: path, text: text, wanted: map[document.Place]*update{}}
		u.gather(suites, report)
		w, err := u.rewrite()
		if err != nil {
			return nil, err
		}
		if len(w.Changes) > 0 {
			if err := l.verify(ctx, &w, report); err != nil {
				return nil, err
			}
		}
		all = append(all, w)
	}
	return all, nil
}

// pathsOf returns the files of the cases in results.
func pathsOf(results []*Result) (paths []string) {
	for _, r := range results {
		if r.Case != nil && !slices.Contains(paths, r.Suite.Path) {
			paths = append(paths, r.Suite.Path)
		}
	}
	return paths
}

// verify runs the rewritten file. It drops the file if a case fails that passed before.
func (l *Loader) verify(ctx context.Context, w *Rewrite, before *Report) error {
	after := Loader{Libraries: l.Libraries, Glob: l.Glob, ReadBelow: l.below}
	after.ReadFile = func(name string) ([]byte, error) {
		if name == w.Path {
			return w.Data, nil
		}
		return l.read(name)
	}
	suites, err := after.Load(w.Path)
	if err != nil {
		return fmt.Errorf("rewriting %s: %w", w.Path, err)
	}
	report, err := Run(ctx, suites, Options{})
	if err != nil {
		return err
	}
	failed := map[string]bool{}
	for _, r := range before.Failed() {
		failed[r.ID()] = true
	}
	for _, r := range report.Failed() {
		if ran := slices.ContainsFunc(before.Results, func(b Result) bool {
			return b.ID() == r.ID()
		}); ran && !failed[r.ID()] {
			w.Data, w.Changes = nil, nil
			w.Kept = append(w.Kept,
				fmt.Sprintf("%s: nothing was rewritten: %s shares a want by an alias and would fail", w.Path,
					r.ID()))
			return nil
		}
	}
	return nil
}

// update is the new value of a field in a suite. Values are JSON.
type update struct {
	was    string
	values []string // the distinct results of the cases that use the field
	failed bool     // a case of this run fails because of this field
}

type updater struct {
	path   string
	text   []byte
	wanted map[document.Place]*update // the key is the place of the value in the file
	kept   []string
}

// gather records the results of all cases of the file.
func (u *updater) gather(suites []*Suite, report *Report) {
	failed := map[*Case]bool{}
	for _, r := range report.Failed() {
		if r.Case != nil {
			failed[r.Case] = true
		}
	}
	for _, s := range suites {
		if s.Path != u.path {
			continue
		}
		for _, c := range s.Cases {
			if c.refusal != nil {
				u.note(s, c.want.decisionAt, c.want.text(), refused, false)
				continue
			}
			in := c.Input
			got := engine.Evaluate(s.subject.policy, s.subject.set, &in)
			u.note(s, c.want.decisionAt, c.want.text(), got.Decision.String(), failed[c])
			if c.want.codes != nil {
				u.note(s, c.want.codesAt, c.want.codes, codesOf(got), failed[c])
			}
		}
	}
	for _, r := range report.Failed() {
		if r.Case != nil && r.Suite.Path == u.path && !r.Case.rewritable(r) {
			u.keep(r.Suite, r.Case.field, r.ID()+" fails for another reason: "+strings.Join(r.Problems, "; "))
		}
	}
}

// rewritable reports whether the decision or the codes of a result differ from those that the case
// wants.
func (c *Case) rewritable(r *Result) bool {
	return r.Got != r.Want || c.want.codes != nil && !slices.Equal(r.Codes, c.want.codes)
}

// note records for a field the old value, the result of one case, and whether this case fails.
func (u *updater) note(s *Suite, field string, was, is any, failed bool) {
	at := s.doc.Problem("suite."+field, "").Place
	w := u.wanted[at]
	if w == nil {
		w = &update{was: string(encode(was))}
		u.wanted[at] = w
	}
	text := string(encode(is))
	w.failed = w.failed || failed && text != w.was
	if !slices.Contains(w.values, text) {
		w.values = append(w.values, text)
	}
}

func (u *updater) keep(s *Suite, field, why string) {
	at := s.doc.Problem("suite."+field, "")
	u.kept = append(u.kept, fmt.Sprintf("%s:%d:%d: not rewritten: %s", u.path, at.Line, at.Column, why))
}

// rewrite returns the file with a new value for each want that can be rewritten.
func (u *updater) rewrite() (w Rewrite, err error) {
	w.Path = u.path
	values := map[document.Place]jsontext.Value{}
	shown := strings.NewReplacer(`"`, "", ",", ", ")
	order := func(a, b document.Place) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) }
	for _, at := range slices.SortedFunc(maps.Keys(u.wanted), order) {
		field := u.wanted[at]
		switch {
		case !field.failed:
		case len(field.values) > 1:
			u.kept = append(u.kept,
				fmt.Sprintf("%s:%d:%d: not rewritten: its cases are not decided alike", u.path, at.Line, at.Column))
		default:
			values[at] = jsontext.Value(field.values[0])
			w.Changes = append(w.Changes, fmt.Sprintf("%s:%d:%d: %s, was %s", u.path, at.Line, at.Column,
				shown.Replace(field.values[0]), shown.Replace(field.was)))
		}
	}
	slices.Sort(u.kept)
	w.Kept = slices.Compact(u.kept)
	if len(values) > 0 {
		w.Data, err = document.Set(u.path, u.text, values)
	}
	return w, err
}
