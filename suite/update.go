package suite

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"writ/document"
	"writ/engine"
)

// Rewrite is a file of suites with what its cases were decided in the place of what was
// wanted. Everything else of it stays as it is.
type Rewrite struct {
	Path string
	Data []byte
	// Changes are what differs, a line each, and Kept says of failing cases why they could
	// not be rewritten.
	Changes, Kept []string
}

// Update rewrites what the failing cases of a report want. Data is nil where nothing could
// be: cases that share their want and are not decided alike are kept, as is what fails for
// another reason.
func (l *Loader) Update(ctx context.Context, suites []*Suite, report *Report) ([]Rewrite, error) {
	var all []Rewrite
	for _, path := range pathsOf(report.Failed()) {
		text, err := l.read(path)
		if err != nil {
			return nil, err
		}
		u := &updater{path: path, text: text, wanted: map[string]*update{}}
		u.gather(suites, report)
		w := u.rewrite()
		if len(w.Changes) > 0 {
			if err := l.verify(ctx, &w, report); err != nil {
				return nil, err
			}
		}
		all = append(all, w)
	}
	return all, nil
}

// pathsOf returns the files of the cases among results.
func pathsOf(results []*Result) (paths []string) {
	for _, r := range results {
		if r.Case != nil && !slices.Contains(paths, r.Suite.Path) {
			paths = append(paths, r.Suite.Path)
		}
	}
	return paths
}

// verify drops what was rewritten unless fewer cases fail by it, and none that held.
func (l *Loader) verify(ctx context.Context, w *Rewrite, before *Report) error {
	after := Loader{Glob: l.Glob, ReadFile: func(name string) ([]byte, error) {
		if name == w.Path {
			return w.Data, nil
		}
		return l.read(name)
	}}
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
		if ran := slices.ContainsFunc(before.Results, func(b Result) bool { return b.ID() == r.ID() }); ran && !failed[r.ID()] {
			w.Data, w.Changes = nil, nil
			w.Kept = append(w.Kept, fmt.Sprintf("%s: nothing was rewritten: %s would fail, which says the same by an alias", w.Path, r.ID()))
			return nil
		}
	}
	return nil
}

// update is what a field of a suite is to say.
type update struct {
	suite  *Suite
	list   bool
	values [][]engine.Code // of each case that the field is about: a decision is one text
	failed bool            // one of them was asked for and fails by this field
}

// updater rewrites one file.
type updater struct {
	path   string
	text   []byte
	wanted map[string]*update // by the place and the field
	kept   []string
}

// gather notes what every case of the file was decided.
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
			in := c.Input
			got := engine.Evaluate(s.subject.policy, s.subject.set, &in)
			decision := []engine.Code{engine.Code(got.Decision.String())}
			u.note(s, c.want.decisionAt, false, decision, failed[c] && got.Decision != c.want.decision)
			if c.want.codes != nil {
				codes := codesOf(got)
				u.note(s, c.want.codesAt, true, codes, failed[c] && !slices.Equal(codes, c.want.codes))
			}
		}
	}
	for _, r := range report.Failed() {
		if r.Case != nil && r.Suite.Path == u.path && !r.Case.rewritable(r) {
			u.keep(r.Suite, r.Case.field, r.ID()+" fails for another reason: "+strings.Join(r.Problems, "; "))
		}
	}
}

// rewritable reports whether a case fails by its decision or its codes.
func (c *Case) rewritable(r *Result) bool {
	return r.Got != r.Want || c.want.codes != nil && !slices.Equal(r.Codes, c.want.codes)
}

func (u *updater) note(s *Suite, field string, list bool, codes []engine.Code, failed bool) {
	at := s.doc.Problem("suite."+field, "")
	key := fmt.Sprintf("%08d:%08d", at.Line, at.Column)
	if u.wanted[key] == nil {
		u.wanted[key] = &update{suite: s, list: list}
	}
	w := u.wanted[key]
	w.failed = w.failed || failed
	if !slices.ContainsFunc(w.values, func(v []engine.Code) bool { return slices.Equal(v, codes) }) {
		w.values = append(w.values, codes)
	}
}

func (u *updater) keep(s *Suite, field, why string) {
	at := s.doc.Problem("suite."+field, "")
	u.kept = append(u.kept, fmt.Sprintf("%s:%d:%d: not rewritten: %s", u.path, at.Line, at.Column, why))
}

// rewrite returns the file with every want that can be rewritten.
func (u *updater) rewrite() Rewrite {
	w := Rewrite{Path: u.path}
	var edits []edit
	for key, field := range u.wanted {
		if !field.failed {
			continue
		}
		var at document.Place
		fmt.Sscanf(key, "%d:%d", &at.Line, &at.Column)
		if len(field.values) > 1 {
			u.kept = append(u.kept, fmt.Sprintf("%s:%d:%d: not rewritten: its cases are not decided alike", u.path, at.Line, at.Column))
			continue
		}
		e, ok := u.edit(at, field)
		if !ok {
			u.kept = append(u.kept, fmt.Sprintf("%s:%d:%d: not rewritten: write it as a plain value or a list", u.path, at.Line, at.Column))
			continue
		}
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	slices.Sort(u.kept)
	w.Kept = slices.Compact(u.kept)
	last := 0
	for _, e := range edits {
		w.Data = append(append(w.Data, u.text[last:e.from]...), e.text...)
		last = e.to
		w.Changes = append(w.Changes, fmt.Sprintf("%s:%d:%d: %s, was %s", u.path, e.at.Line, e.at.Column, flat(e.text), flat(string(u.text[e.from:e.to]))))
	}
	if len(edits) > 0 {
		w.Data = append(w.Data, u.text[last:]...)
	}
	return w
}

// flat is a text on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// edit puts a text in the place of the bytes from and to of a file.
type edit struct {
	at       document.Place
	from, to int
	text     string
}

// edit returns the edit that has the value at a place say what the field is to say.
func (u *updater) edit(at document.Place, field *update) (edit, bool) {
	e := edit{at: at, from: offset(u.text, at)}
	if e.from >= len(u.text) {
		return e, false
	}
	quoted := strings.HasSuffix(u.path, ".json")
	switch first := u.text[e.from]; {
	case !field.list:
		e.to = scalarEnd(u.text, e.from)
		e.text = spelled(field.values[0][0], quoted || first == '"')
	case first == '[':
		e.to = listEnd(u.text, e.from)
		e.text = flowList(u.text[e.from:e.to], field.values[0], quoted)
	case first == '-' && !quoted:
		e.to, e.text = blockList(u.text, e.from, at.Column-1, field.values[0])
	}
	return e, e.to > e.from
}

// offset returns where a place is in text.
func offset(text []byte, at document.Place) int {
	start := 0
	for range at.Line - 1 {
		i := bytes.IndexByte(text[start:], '\n')
		if i < 0 {
			return len(text)
		}
		start += i + 1
	}
	for i, r := range []rune(string(line(text, start))) {
		if i == at.Column-1 {
			break
		}
		start += len(string(r))
	}
	return start
}

// line returns the line of text that starts at an offset, without its end.
func line(text []byte, start int) []byte {
	before, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return before
}

// isWord reports whether b can be of a decision or a code.
func isWord(b byte) bool {
	return b == '_' || b == '.' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// scalarEnd returns where the scalar at from ends, which is a word, quoted or not; from
// where it is neither.
func scalarEnd(text []byte, from int) int {
	end := from
	if q := text[from]; q == '"' || q == '\'' {
		end++
		for end < len(text) && isWord(text[end]) {
			end++
		}
		if end >= len(text) || text[end] != q {
			return from
		}
		return end + 1
	}
	for end < len(text) && isWord(text[end]) {
		end++
	}
	return end
}

// listEnd returns where the list between brackets at from ends, from where it does not.
func listEnd(text []byte, from int) int {
	for i := from; i < len(text); i++ {
		switch text[i] {
		case ']':
			return i + 1
		case '#':
			return from // a comment, which has to stay
		}
	}
	return from
}

// words returns the words of a list, in order.
func words(text []byte) (all []engine.Code) {
	for _, w := range bytes.FieldsFunc(text, func(r rune) bool { return r > 0x7f || !isWord(byte(r)) }) {
		all = append(all, engine.Code(w))
	}
	return all
}

// arranged returns codes with those that stood there first, in their order, and then the
// others as checks are.
func arranged(stood, codes []engine.Code) (all []engine.Code) {
	for _, c := range slices.Concat(stood, engine.Codes()) {
		if slices.Contains(codes, c) && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func flowList(old []byte, codes []engine.Code, quoted bool) string {
	var texts []string
	for _, c := range arranged(words(old), codes) {
		texts = append(texts, spelled(c, quoted || bytes.IndexByte(old, '"') >= 0))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func spelled(c engine.Code, quoted bool) string {
	if quoted {
		return `"` + string(c) + `"`
	}
	return string(c)
}

// blockList returns the list of lines that begin with a dash, the first at from after
// indent bytes, and where it ends. The lines of codes that stay keep their comments.
func blockList(text []byte, from, indent int, codes []engine.Code) (end int, list string) {
	var kept []string
	var stood []engine.Code
	for end = from; end < len(text); {
		start := end
		if start != from {
			start += indent
		}
		if start >= len(text) || start != from && len(bytes.TrimLeft(text[end:start], " ")) > 0 || text[start] != '-' {
			break
		}
		l := line(text, start)
		code := words(bytes.Trim(l[1:], " "))
		if len(code) == 0 {
			return from, ""
		}
		if slices.Contains(codes, code[0]) {
			kept = append(kept, strings.TrimRight(string(l), "\r"))
			stood = append(stood, code[0])
		}
		end = min(start+len(l)+1, len(text))
	}
	for _, c := range arranged(nil, codes) {
		if !slices.Contains(stood, c) {
			kept = append(kept, "- "+string(c))
		}
	}
	eol := "\n"
	if bytes.HasSuffix(line(text, from), []byte("\r")) {
		eol = "\r\n"
	}
	end -= len(text[from:end]) - len(bytes.TrimSuffix(text[from:end], []byte(eol)))
	return end, strings.Join(kept, eol+strings.Repeat(" ", indent))
}
