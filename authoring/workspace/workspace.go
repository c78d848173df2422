package workspace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// Workspace has the documents of a directory's files.
type Workspace struct {
	dir      string
	texts    map[string][]byte // the contents of the files by name
	policies []*Local
	rules    []*Local
	lists    []*Local
	// libraries has the libraries in the directory lib, sorted by name. compiled has them compiled.
	libraries []*Local
	compiled  engine.Libraries
}

// Local is a policy, a rule or a list in a file, or a library in a directory.
type Local struct {
	// doc is nil for a library.
	doc   *document.Document
	index int // the document's index in its file
	// Only one of policy, rule, list and library is set.
	policy  *engine.ActionPolicy
	rule    *engine.Rule
	list    *engine.List
	library *engine.Library
	dir     string   // the directory of the library
	looks   []string // the names of the lists that the rule uses
}

// Open reads the documents in a directory, except intents and suites. If documents have mistakes,
// the error is one *[document.Error] with all problems. The rules may import the libraries of the
// directory.
func Open(dir string, o engine.Options) (*Workspace, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", dir)
	}
	names, err := Files(dir)
	if err != nil {
		return nil, err
	}
	w := &Workspace{dir: dir, texts: make(map[string][]byte)}
	if o, err = w.openLibraries(o); err != nil {
		return nil, err
	}
	var all document.Error
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		w.texts[name] = data
		docs, err := document.Load(name, data, document.Below(name))
		if err := all.Add(err); err != nil {
			return nil, err
		}
		w.read(docs)
		for i, d := range docs {
			if err := all.Add(w.add(&Local{doc: d, index: i}, o)); err != nil {
				return nil, err
			}
		}
	}
	w.refuseTwice(&all)
	var rules []*document.Document
	for _, l := range w.rules {
		if err := all.Add(document.CheckPackage(l.doc, rules)); err != nil {
			return nil, err
		}
		rules = append(rules, l.doc)
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	return w, nil
}

// add decodes and validates a document, and adds it to the workspace.
func (w *Workspace) add(l *Local, o engine.Options) (err error) {
	switch l.doc.Kind {
	case document.Intent, document.Suite:
	case document.Policy:
		if l.policy, err = l.doc.Policy(); err == nil {
			w.policies = append(w.policies, l)
		}
	case document.Rule:
		compiled, err := l.doc.Rule(o)
		if err != nil {
			return err
		}
		rule := compiled.Rule()
		l.rule, l.looks = &rule, compiled.Lists()
		w.rules = append(w.rules, l)
	case document.List:
		if l.list, err = l.doc.List(); err == nil {
			w.lists = append(w.lists, l)
		}
	default: // the kind is unknown: it may be a policy with only misspelt members
		_, err = l.doc.Policy()
	}
	return err
}

// refuseTwice adds a problem for each document that has the id or name of an earlier document.
func (w *Workspace) refuseTwice(all *document.Error) {
	seen := make(map[string]*Local)
	for _, l := range slices.Concat(w.policies, w.rules, w.lists) {
		var id, field string
		switch {
		case l.rule != nil:
			id, field = l.rule.ID, "rule.id"
		case l.list != nil:
			id, field = l.list.Name, "list.name"
		default:
			id, field = l.policy.PolicyID, "policy.policy_id"
		}
		other := seen[field+id]
		switch {
		case id == "":
		case other == nil:
			seen[field+id] = l
		default:
			all.Problems = append(all.Problems, l.doc.Problem(field, "is also in "+other.place()))
		}
	}
}

// place returns the place at which a document begins, as file:line, or the directory of a library.
func (l *Local) place() string {
	if l.doc == nil {
		return l.dir
	}
	p := l.doc.Problem("", "")
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// rewrite changes documents in files and returns the names of the changed files. heads has the
// first line of each new YAML file. plain has the contents of files without documents, such as Rego
// files. If one of the files cannot be changed, none is.
func (w *Workspace) rewrite(
	edits map[string][]document.Edit, heads, plain map[string]string,
) (changed []string, err error) {
	texts := make(map[string][]byte)
	for name, all := range edits {
		out, err := document.Rewrite(name, w.texts[name], all...)
		if err != nil {
			return nil, err
		}
		if _, known := w.texts[name]; !known && filepath.Ext(name) != ".json" {
			out = append([]byte(heads[name]), out...)
		}
		if string(out) != string(w.texts[name]) {
			texts[name] = out
		}
	}
	for name, text := range plain {
		if was, known := w.texts[name]; !known || text != string(was) {
			texts[name] = []byte(text)
		}
	}
	names := slices.Sorted(maps.Keys(texts))
	if err := w.checkWritable(names); err != nil {
		return nil, err
	}
	err = w.inside(names, func(root *os.Root, name, inside string) error {
		out := texts[name]
		_, known := w.texts[name]
		write := func() error { return replace(root, inside, out) }
		if known && len(out) == 0 {
			write = func() error { return root.Remove(inside) }
		}
		if err := write(); err != nil {
			return err
		}
		w.texts[name] = out
		changed = append(changed, name)
		return nil
	})
	return changed, err
}
