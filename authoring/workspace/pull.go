package workspace

import (
	"fmt"
	"maps"
	"path/filepath"

	"writ.example/writ/authoring/document"
)

// PullOptions says what a pull may overwrite or remove.
type PullOptions struct {
	// Prune removes documents from the files if the server does not have them any more. It
	// removes only documents that came from a server: rules with an id, lists with a createdAt, and
	// libraries with a file .pulled.
	Prune bool
	// Force overwrites documents that were edited in the files.
	Force bool
	// Schemas is the URL of the server's JSON Schemas, such as http://localhost:3820/schemas/. The
	// first line of a new file names the schema of its document, so that editors complete and check
	// the document. If Schemas is empty, new files do not have this line.
	Schemas string
}

// Pulled is the result of a pull.
type Pulled struct {
	Written []string // the names of the changed files
	// Kept has the documents that were not changed. They were edited in the files and not pushed,
	// or the server does not have them.
	Kept []Change
	// Refused has the documents that were changed on the server since the last pull. The files
	// may have been changed, too. If Refused is not empty, nothing is written.
	Refused []Change
}

// Pull writes the server's documents into the files. Equal documents keep their text. If two
// forms of a document differ only in scalars, Pull replaces only the text of these scalars.
func (p *Plan) Pull(o PullOptions) (done Pulled, err error) {
	edits, schemas, files := facts(p.same), map[string]string{}, p.w.regoFiles()
	plain := libraryFacts(p.same)
	for _, c := range p.Changes {
		switch {
		case c.Kind == document.Library && c.pulls(o):
			p.w.storeLibrary(c, plain)
		case c.State == Missing:
			name := p.w.fileFor(c)
			edits[name] = append(edits[name], document.Edit{Index: atEnd, JSON: c.stored(files, name)})
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
				document.Edit{Index: c.local.index, JSON: c.stored(files, c.local.doc.Name())})
		}
	}
	if len(done.Refused) > 0 {
		return done, nil
	}
	maps.Copy(plain, files.texts)
	done.Written, err = p.w.rewrite(edits, schemas, plain)
	return done, err
}

// stored returns the server's document as it is written into the file called in.
func (c Change) stored(files *regoFiles, in string) []byte {
	switch {
	case c.rule != nil:
		return files.stored(c.rule, c.local, in)
	case c.list != nil:
		return encode(c.list)
	}
	return encode(c.policy)
}

// pulled reports whether a rule, a list or a library came from a server.
func (l *Local) pulled() bool {
	return l.rule != nil && l.rule.ID != "" || l.list != nil && !l.list.CreatedAt.IsZero() ||
		l.library != nil && !l.library.CreatedAt.IsZero()
}

// fileFor returns the file for a new document. A policy or a list gets a file of its own. A rule
// gets the file of the last rule.
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
