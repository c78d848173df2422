package suite

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// Suite is a suite for one policy.
type Suite struct {
	// Name is the name in the file. If the suite has several policies, the policy's path is
	// appended.
	Name string
	// Path is the suite's file. Files has all files that the suite was read from.
	Path  string
	Files []string
	Cases []*Case

	doc *document.Document
	// libraries is the directory of the libraries, or empty.
	libraries string
	// fixtures has the decoded intents by name.
	fixtures map[string]*engine.Intent
	now      time.Time // the time of the decisions, zero if the file has none
	subject  *subject
	rego     []rego.File // the Rego tests in the policy's directory
	// modules has the Rego files of the rules. moduleTests has the tests of their packages.
	modules, moduleTests []rego.File
}

// Loader reads suites. It reads each file and compiles each policy only once for all of its suites.
// A Loader is not safe for concurrent use.
type Loader struct {
	// ReadFile reads a file. Nil means [os.ReadFile].
	ReadFile func(name string) ([]byte, error)
	// ReadBelow returns a function that reads files below the directory of a file, as
	// [document.Load] wants it. Nil means [document.Below], or ReadFile if there is one.
	ReadBelow func(name string) func(path string) ([]byte, error)
	// Glob lists files. Nil means [filepath.Glob].
	Glob func(pattern string) ([]string, error)

	// Libraries has the libraries that the rules of suites without a directory of their own import, or
	// is nil.
	Libraries engine.Libraries
	// librariesIn is the directory from which such suites read their libraries, or empty.
	librariesIn string

	files    map[string]*file
	subjects map[[sha256.Size]byte]*subject
	// libraries has the compiled libraries by their sources.
	libraries map[[sha256.Size]byte]engine.Libraries
}

// Load reads the suites of a file. A suite with several policies becomes one Suite for each policy.
// If a file has mistakes, the error is a *[document.Error] with every mistake.
func (l *Loader) Load(path string) ([]*Suite, error) {
	data, err := l.read(path)
	if err != nil {
		return nil, err
	}
	docs, err := document.Load(path, data, l.below(path))
	if err != nil {
		return nil, err
	}
	var all []*Suite
	found := new(document.Error)
	for _, d := range docs {
		suites, err := l.suites(path, d)
		if err := found.Add(err); err != nil {
			return nil, err
		}
		all = append(all, suites...)
	}
	slices.SortStableFunc(found.Problems, func(a, b document.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return all, found.Err()
}

// suites reads one document and returns a suite for each policy.
func (l *Loader) suites(path string, d *document.Document) ([]*Suite, error) {
	f, err := decode(d)
	if err != nil {
		return nil, err
	}
	r := &reader{loader: l, path: path, doc: d, files: []string{path}}
	if r.readLibraries(f); r.problems.Err() != nil || r.err != nil {
		return nil, cmp.Or(r.err, r.problems.Err())
	}
	rules := r.rules(f)
	r.checkPackages(rules)
	lists := r.lists(f)
	policies := r.policies(f)
	if err := cmp.Or(r.err, r.problems.Err()); err != nil {
		return nil, err
	}
	var all []*Suite
	for _, p := range policies {
		subject, err := l.subject(p, rules, lists, r.libraries)
		if err != nil {
			return nil, err
		}
		r.checkLists(subject)
		s := &Suite{Name: f.Suite, Path: path, doc: d, subject: subject, libraries: r.libraries.dir}
		if s.Name == "" {
			s.Name = filepath.Base(path)
		}
		if len(policies) > 1 {
			s.Name += " (" + p.name + ")"
		}
		if s.rego, err = l.regoTests(p, rules); err != nil {
			return nil, err
		}
		if s.modules, s.moduleTests, err = l.moduleTests(rules); err != nil {
			return nil, err
		}
		for _, f := range slices.Concat(s.rego, s.modules, s.moduleTests) {
			r.files = append(r.files, f.Name)
		}
		r.expand(s, f)
		all = append(all, s)
	}
	for _, s := range all {
		s.Files = r.files
	}
	return all, cmp.Or(r.problems.Err(), r.err)
}

func (l *Loader) read(path string) ([]byte, error) {
	if l.ReadFile != nil {
		return l.ReadFile(path)
	}
	return os.ReadFile(path)
}

// below returns a function that reads Rego files that the file called name refers to.
func (l *Loader) below(name string) func(path string) ([]byte, error) {
	switch {
	case l.ReadBelow != nil:
		return l.ReadBelow(name)
	case l.ReadFile == nil:
		return document.Below(name)
	}
	return func(path string) ([]byte, error) {
		return l.ReadFile(filepath.Join(filepath.Dir(name), filepath.FromSlash(path)))
	}
}

type reader struct {
	loader    *Loader
	path      string
	doc       *document.Document
	files     []string
	libraries libraries
	problems  document.Error
	refused   int   // the number of problems passed to refuse, with duplicates
	err       error // the first error that is not a mistake in a file
}

// refuse adds a problem with a field of the suite.
func (r *reader) refuse(field, format string, args ...any) {
	if r.refused++; r.refused > condition.MaxMistakes {
		return
	}
	p := r.doc.Problem("suite."+field, fmt.Sprintf(format, args...))
	p.Field = field
	r.add(&document.Error{Problems: []document.Problem{p}})
}

// add adds the problems of err. err may be nil.
func (r *reader) add(err error) {
	if err := r.problems.Add(err); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *reader) policies(f *File) []source {
	var all []source
	switch {
	case f.Policy != nil && f.Policies != nil:
		r.refuse("policies", "there is also a policy: give only one of them")
	case f.Policy != nil:
		all = r.sources("policy", f.Policy, document.Policy)
	case len(f.Policies) > 0:
		for i, v := range f.Policies {
			all = append(all, r.sources(fmt.Sprintf("policies[%d]", i), v, document.Policy)...)
		}
	default:
		r.refuse("policy", "is required: a path or a policy")
	}
	return all
}

func (r *reader) rules(f *File) []source {
	if f.Rules.Kind() != '[' {
		return r.sources("rules", f.Rules, document.Rule)
	}
	var items []jsontext.Value
	_ = json.Unmarshal(f.Rules, &items) // cannot fail: Rules has already been decoded
	var all []source
	for i, v := range items {
		all = append(all, r.sources(fmt.Sprintf("rules[%d]", i), v, document.Rule)...)
	}
	return all
}

// sources reads the policies or rules that v has or refers to. v is a path or a document.
func (r *reader) sources(field string, v jsontext.Value, kind document.Kind) []source {
	var path string
	switch {
	case v == nil:
		return nil
	case v.Kind() == '{':
		d, _ := r.doc.Child(field)
		read, err := readSource(d, kind, r.path, conditions(nil, r.libraries.compiled))
		r.add(err)
		if err != nil {
			return nil
		}
		return []source{read}
	case json.Unmarshal(v, &path) != nil:
		r.refuse(field, "want a path or a %s", kind)
		return nil
	}
	name := path
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.path), filepath.FromSlash(path))
	}
	if !slices.Contains(r.files, path) {
		r.files = append(r.files, path)
	}
	found, err := r.loader.file(path, kind, r.libraries)
	switch unreadable := (*fs.PathError)(nil); {
	case errors.As(err, &unreadable):
		r.refuse(field, "reading %s: %v", path, unreadable.Err)
	case err != nil:
		r.add(err)
	case len(found) == 0:
		r.refuse(field, "there is no %s in %s", kind, path)
	case kind == document.Policy && len(found) > 1:
		r.refuse(field, "there are %d policies in %s: want one", len(found), path)
	}
	for i := range found {
		found[i].name = name
	}
	return found
}
