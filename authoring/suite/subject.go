package suite

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// conditions returns the options for compiling rules in every language, over lists.
func conditions(lists condition.Lists, libraries engine.Libraries) engine.Options {
	return engine.Options{CompileRego: rego.CompileCondition, Libraries: libraries, Lists: lists}
}

func (r *reader) lists(f *File) []engine.List {
	var all []engine.List
	for _, name := range slices.Sorted(maps.Keys(f.Lists)) {
		l := engine.ListOf(name, f.Lists[name])
		var invalid *engine.InvalidError
		if errors.As(l.Validate(), &invalid) {
			for _, bad := range invalid.Fields {
				field := strings.TrimPrefix(strings.TrimPrefix(bad.Field, "values"), "name")
				r.refuse("lists."+name+strings.TrimPrefix(field, "data"), "%s", bad.Message)
			}
		}
		l.Normalize()
		all = append(all, l)
	}
	return all
}

// checkLists reports each rule that uses a list that the suite does not have.
func (r *reader) checkLists(s *subject) {
	for _, rule := range s.ruleSources {
		for _, name := range rule.lists {
			switch l := s.conditions.Lists[name]; {
			case l == nil:
				r.add(&document.Error{Problems: []document.Problem{
					rule.doc.Problem("condition",
						fmt.Sprintf("looks in the list %s, which %s does not have: give its values under lists", name,
							r.path)),
				}})
			case !l.IsTexts() && slices.Contains(rule.texts, name):
				r.add(&document.Error{Problems: []document.Problem{
					rule.doc.Problem("condition",
						fmt.Sprintf("looks for texts in the list %s, which is a document in %s: read data.lists.%[1]s "+
							"in Rego, or give an array of texts", name, r.path)),
				}})
			}
		}
	}
}

// checkPackages reports each rule whose Rego file has the package of another rule's file.
func (r *reader) checkPackages(rules []source) {
	var docs []*document.Document
	for _, rule := range rules {
		r.add(document.CheckPackage(rule.doc, docs))
		docs = append(docs, rule.doc)
	}
}

// source is a policy or a rule, and the file that it is in.
type source struct {
	name   string // a path as in the suite, or the path of the suite itself
	file   string
	doc    *document.Document
	wire   []byte
	policy *engine.ActionPolicy
	rule   *engine.Rule
	// lists has the names of the lists that the rule uses, and texts of those that it uses as texts.
	lists, texts []string
}

func (s *source) place(field string) document.Place { return s.doc.Problem(field, "").Place }

// lineOf returns a line number in the file. The first argument is the JSON pointer of a text in the
// condition. The second is the line within this text.
func (s *source) lineOf(at string, line int) int {
	in := condition.Mistake{At: at, Line: line, Column: 1, Message: "here"}
	err := s.doc.Locate(&engine.InvalidError{Fields: []engine.FieldError{{Field: "condition", In: in}}})
	var found *document.Error
	if !errors.As(err, &found) {
		return 0
	}
	return found.Problems[0].Line
}

// readSource decodes and validates a policy or a rule.
func readSource(d *document.Document, kind document.Kind, file string, o engine.Options) (source, error) {
	s := source{name: file, file: file, doc: d, wire: d.JSON()}
	if kind == document.Policy {
		p, err := d.Policy()
		s.policy = p
		return s, err
	}
	r, err := d.Rule(o)
	if err == nil {
		doc := r.Rule()
		s.rule, s.lists, s.texts = &doc, r.Lists(), r.Texts()
	}
	return s, err
}

type file struct {
	sum     [sha256.Size]byte // of the file, of the Rego files that it names, and of the libraries
	sources map[document.Kind][]source
}

// file reads a file's documents of one kind. It compiles them again only if the content has changed.
func (l *Loader) file(path string, kind document.Kind, libraries libraries) ([]source, error) {
	data, err := l.read(path)
	if err != nil {
		return nil, err
	}
	docs, err := document.Load(path, data, l.below(path))
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		for _, f := range d.RegoFiles() {
			data = append(data, "\n"+f.Source...)
		}
	}
	sum := sha256.Sum256(append(data, libraries.sum[:]...))
	known := l.files[path]
	if known == nil || known.sum != sum {
		known = &file{sum: sum, sources: map[document.Kind][]source{}}
	}
	if found, ok := known.sources[kind]; ok {
		return slices.Clone(found), nil
	}
	all, found := new(document.Error), []source{}
	for _, d := range docs {
		if d.Kind != kind && d.Kind != "" {
			continue // the file may also have documents of other kinds
		}
		s, err := readSource(d, kind, path, conditions(nil, libraries.compiled))
		if err == nil {
			found = append(found, s)
		} else if err := all.Add(err); err != nil {
			return nil, err
		}
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	if l.files == nil {
		l.files = map[string]*file{}
	}
	known.sources[kind] = found
	l.files[path] = known
	return slices.Clone(found), nil
}

// subject is a policy version and its rules, which a suite tests.
type subject struct {
	policySource source
	ruleSources  []source // same order as in the suite and in rules
	doc          *engine.ActionPolicy
	rules        []engine.Rule
	conditions   engine.Options // with which the rules were compiled, and their lists and libraries
	policy       *engine.Policy
	set          *engine.RuleSet
	// preparation is set by the first call of prepared.
	preparation *preparation
}

// subject compiles a policy with its rules and lists. It compiles each combination only once.
func (l *Loader) subject(p source, rules []source, lists []engine.List, libraries libraries) (*subject, error) {
	key := subjectKey(p, rules, lists, libraries)
	if s := l.subjects[key]; s != nil {
		return s, nil
	}
	s := &subject{
		policySource: p, ruleSources: rules, doc: p.policy,
		conditions: conditions(engine.CompileLists(lists), libraries.compiled),
	}
	for i, r := range rules {
		doc := *r.rule
		if doc.ID == "" {
			doc.ID = fmt.Sprintf("rule-%d", i+1)
		}
		s.rules = append(s.rules, doc)
	}
	policy, err := engine.CompilePolicy(p.policy)
	if err != nil {
		return nil, p.doc.Locate(err)
	}
	s.policy, s.set = policy, engine.CompileRules(s.rules, s.conditions)
	if l.subjects == nil {
		l.subjects = map[[sha256.Size]byte]*subject{}
	}
	l.subjects[key] = s
	return s, nil
}

// libraries returns the libraries that the rules may import.
func (s *subject) libraries() []engine.Library {
	if s.conditions.Libraries == nil {
		return nil
	}
	return s.conditions.Libraries.Documents()
}

func subjectKey(p source, rules []source, lists []engine.List, libraries libraries) [sha256.Size]byte {
	all := [][]byte{[]byte(p.file), p.wire, libraries.sum[:]}
	for _, r := range rules {
		all = append(all, []byte(r.file), r.wire)
	}
	for _, l := range lists {
		all = append(all, fmt.Appendf(nil, "%s %q %s", l.Name, l.Values, l.Data))
	}
	return sha256.Sum256(bytes.Join(all, []byte("\n")))
}

// listed returns the names of the lists with their content, sorted.
func (s *subject) listed() (all []string) {
	for name, l := range s.conditions.Lists {
		all = append(all, name+" "+string(l.Document()))
	}
	slices.Sort(all)
	return all
}

// ruleCalled returns the ids of the rules with this name or id.
func (s *subject) ruleCalled(name string) (ids []string) {
	for _, r := range s.rules {
		if r.ID == name || r.Name == name {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (s *subject) ruleName(id string) string {
	for i := range s.rules {
		if s.rules[i].ID == id {
			return s.rules[i].Name
		}
	}
	return id
}
