package workspace

import (
	"fmt"
	"path/filepath"

	"writ/authoring/document"
)

// PullOptions say what a pull may take from the files.
type PullOptions struct {
	// Prune removes rules that have an id, and lists that have a createdAt, which the server
	// does not have.
	Prune bool
	// Force overwrites what was edited in the files.
	Force bool
	// Schemas is where the server has the JSON Schemas of documents, such as
	// http://localhost:3820/schemas/: the first line of a file that is made names its own, so
	// that editors complete and check it. Where it is empty, no file names one.
	Schemas string
}

// Pulled is what a pull did.
type Pulled struct {
	Written []string // the names of files
	// Kept are the documents that were left as they are, since they were edited here and not
	// pushed, or are not on the server.
	Kept []Change
	// Refused are those that were changed on the server and perhaps here. Where there is one,
	// nothing is written.
	Refused []Change
}

// Pull puts what the server has into the files. A document that says the same stays as it is
// written, and one of which only scalars differ is changed in those alone.
func (p *Plan) Pull(o PullOptions) (done Pulled, err error) {
	edits, schemas := facts(p.same), map[string]string{}
	for _, c := range p.Changes {
		switch {
		case c.State == Missing:
			name := p.w.fileFor(c)
			edits[name] = append(edits[name], document.Edit{Index: atEnd, JSON: c.stored()})
			if o.Schemas != "" {
				schemas[name] = fmt.Sprintf("# yaml-language-server: $schema=%s%s.schema.json\n", o.Schemas, c.Kind)
			}
		case c.State == Added && o.Prune && c.local.pulled():
			edits[c.local.doc.Name()] = append(edits[c.local.doc.Name()], document.Edit{Index: c.local.index})
		case c.State == Added, c.State == Edited && !o.Force:
			done.Kept = append(done.Kept, c)
		case c.State == Diverged && !o.Force:
			done.Refused = append(done.Refused, c)
		default:
			edits[c.local.doc.Name()] = append(edits[c.local.doc.Name()],
				document.Edit{Index: c.local.index, JSON: c.stored()})
		}
	}
	if len(done.Refused) > 0 {
		return done, nil
	}
	done.Written, err = p.w.rewrite(edits, schemas)
	return done, err
}

func (c Change) stored() []byte {
	switch {
	case c.rule != nil:
		return encode(c.rule)
	case c.list != nil:
		return encode(c.list)
	}
	return encode(c.policy)
}

// pulled reports whether a rule or a list has been on a server.
func (l *Local) pulled() bool {
	return l.rule != nil && l.rule.ID != "" || l.list != nil && !l.list.CreatedAt.IsZero()
}

// fileFor returns the file that a document which is on the server only is put into: a policy
// and a list have their own, a rule that of the last one here.
func (w *Workspace) fileFor(c Change) string {
	if c.Kind == document.Policy {
		return filepath.Join(w.dir, "policies", c.ID+".yaml")
	}
	if c.Kind == document.List {
		return filepath.Join(w.dir, "lists", c.Name+".yaml")
	}
	if len(w.rules) > 0 {
		return w.rules[len(w.rules)-1].doc.Name()
	}
	return filepath.Join(w.dir, "rules.yaml")
}
