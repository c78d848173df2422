package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// regoFiles chooses the Rego files of a pull.
type regoFiles struct {
	w *Workspace
	// texts has the new contents of files by name. packages has the name of the file of each package.
	texts    map[string]string
	packages map[string]string
}

func (w *Workspace) regoFiles() *regoFiles {
	f := &regoFiles{w: w, texts: make(map[string]string), packages: make(map[string]string)}
	for _, l := range w.rules {
		if have, ok := l.doc.RegoFile(); ok {
			pkg, _ := rego.PackageOf(have.Source)
			f.packages[pkg] = have.Name
		}
	}
	return f
}

// stored returns a rule of the server as it is written into the file called in. A module goes into
// the Rego file of the rule l, or into a new file if l is nil. A module stays in the rule if its
// author has it there, or if a file cannot have its package.
func (f *regoFiles) stored(r *engine.Rule, l *Local, in string) jsontext.Value {
	inline := encode(r)
	source, ok := moduleOf(r)
	if !ok {
		return inline
	}
	pkg, _ := rego.PackageOf(source)
	first, _, _ := strings.Cut(pkg, ".")
	var name, path string
	if l != nil {
		have, ok := l.doc.RegoFile()
		if !ok {
			return inline
		}
		name, path = have.Name, have.Path
	}
	if taken, ok := f.packages[pkg]; first == "writ" || first == "lib" || ok && taken != name {
		return inline
	}
	if l == nil {
		path = f.free(in, r)
		name = filepath.Join(filepath.Dir(in), path)
	}
	f.texts[name], f.packages[pkg] = source, name
	return with(inline, []member{{"condition", encode(map[string]any{"rego": map[string]string{"file": path}})}})
}

// moduleOf returns the module of a rule whose condition is one.
func moduleOf(r *engine.Rule) (string, bool) {
	var c struct {
		Rego string `json:"rego"`
	}
	if err := json.Unmarshal([]byte(r.Condition), &c, json.RejectUnknownMembers(true)); err != nil {
		return "", false
	}
	_, ok := rego.PackageOf(c.Rego)
	return c.Rego, ok
}

// free returns the name of a new file beside the file called in. It is made of the rule's name, or
// also of its id if that name is taken.
func (f *regoFiles) free(in string, r *engine.Rule) string {
	slug := strings.Trim(rego.NameOf(r.Name), "_")
	name := slug + ".rego"
	full := filepath.Join(filepath.Dir(in), name)
	_, taken := f.texts[full]
	if _, err := os.Lstat(full); taken || slug == "" || strings.HasSuffix(slug, "_test") ||
		!errors.Is(err, fs.ErrNotExist) {
		return strings.Trim(slug+"_"+rego.NameOf(r.ID), "_") + ".rego"
	}
	return name
}

// read records the Rego files that documents name, so that a pull may change them.
func (w *Workspace) read(docs []*document.Document) {
	for _, d := range docs {
		for _, f := range d.RegoFiles() {
			w.texts[f.Name] = []byte(f.Source)
		}
	}
}
