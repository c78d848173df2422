package document

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// RegoFile is a file of Rego that the condition of a rule names.
//
//	condition: {rego: {file: large_payments.rego}}
//
// The path is relative to the directory of the rule's file, and stays below it. The file is a
// module. Its package is the author's own: no other rule has it, and it is neither writ nor lib,
// nor below one of them.
type RegoFile struct {
	// Name is the name of the file, as errors show it. Path is the path that the rule gives.
	Name, Path string
	Source     string
}

// Load is [Parse], and also reads the Rego files that rules name. read returns the content of a
// file. path has slashes, and is relative to the directory of the file called name. [Below] returns
// a read for files on disk. Documents that Load returns have the Rego in place of the file's name
// in JSON, Canonical and Rule.
func Load(name string, data []byte, read func(path string) ([]byte, error)) ([]*Document, error) {
	docs, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	all := new(Error)
	for _, d := range docs {
		if err := all.Add(d.root.include(d.file, read)); err != nil {
			return nil, err
		}
	}
	if err := all.Err(); err != nil {
		return nil, err
	}
	return docs, nil
}

// Below returns a function that reads files in the directory of the file called name and below it.
// No link leads out of the directory. It reads no more than a condition can have.
func Below(name string) func(path string) ([]byte, error) {
	return func(path string) (data []byte, err error) {
		root, err := os.OpenRoot(filepath.Dir(name))
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, root.Close()) }()
		path = filepath.FromSlash(path)
		if info, err := root.Stat(path); err != nil {
			return nil, err
		} else if !info.Mode().IsRegular() { // a pipe would block
			return nil, errors.New("is no regular file")
		}
		f, err := root.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		return io.ReadAll(io.LimitReader(f, condition.MaxCondition+1))
	}
}

// fileNamed returns the value that names a Rego file, if n is a condition that names one.
func (n *node) fileNamed() *node {
	if n.kind != '{' {
		return nil
	}
	if in := n.member("rego"); in != nil && in.kind == '{' {
		return in
	}
	return nil
}

// include reads the Rego files that conditions in n name.
func (n *node) include(in *file, read func(path string) ([]byte, error)) error {
	all := new(Error)
	for i, kid := range n.kids {
		if n.kind == '{' && n.keys[i].name == "condition" && kid.fileNamed() != nil {
			if err := all.Add(kid.fileNamed().read(in, read)); err != nil {
				return err
			}
			continue
		}
		if err := all.Add(kid.include(in, read)); err != nil {
			return err
		}
	}
	return all.Err()
}

// read reads the file that n names, an object such as {file: team.rego}.
func (n *node) read(in *file, read func(path string) ([]byte, error)) error {
	refuse := func(at *node, format string, args ...any) error {
		return &Error{Problems: []Problem{in.problem(at.at, "condition.rego", fmt.Sprintf(format, args...))}}
	}
	name := n.member("file")
	if name == nil || name.kind != '"' || len(n.kids) > 1 {
		return refuse(n, "want a text in Rego, or {file: NAME.rego}")
	}
	at := path.Clean(name.text)
	switch {
	case path.Ext(at) != ".rego" || strings.HasSuffix(at, "_test.rego"):
		return refuse(name, "%s: want a file whose name ends in .rego, and not in _test.rego", name.text)
	case !filepath.IsLocal(filepath.FromSlash(at)) || strings.ContainsAny(name.text, `\`):
		return refuse(name, "%s: want a path below the directory of this file, with slashes", name.text)
	}
	data, err := read(at)
	if err != nil {
		if unreadable := (*fs.PathError)(nil); errors.As(err, &unreadable) {
			err = unreadable.Err
		}
		return refuse(name, "reading %s: %v", name.text, err)
	}
	if len(data) > condition.MaxCondition {
		return refuse(name, "%s has more than %d bytes", name.text, condition.MaxCondition)
	}
	path := filepath.Join(filepath.Dir(in.name), filepath.FromSlash(at))
	n.rego = &RegoFile{Name: path, Path: at, Source: string(data)}
	in.includes = true
	return nil
}

// RegoFile returns the Rego file that a rule names. It reports false if the rule names none.
func (d *Document) RegoFile() (RegoFile, bool) {
	c := d.root.member("condition")
	if d.Kind == Rule && c != nil && c.fileNamed() != nil && c.fileNamed().rego != nil {
		return *c.fileNamed().rego, true
	}
	return RegoFile{}, false
}

// RegoFiles returns the Rego files that the document names.
func (d *Document) RegoFiles() (all []RegoFile) {
	d.root.each(func(n *node) {
		if n.rego != nil {
			all = append(all, *n.rego)
		}
	})
	return all
}

func (n *node) each(f func(*node)) {
	f(n)
	for _, kid := range n.kids {
		kid.each(f)
	}
}

// inlined returns the document's value with the texts of Rego files in place of their names.
func (d *Document) inlined() *node {
	if !d.file.includes {
		return d.root
	}
	return d.root.replaced(nil, func(n *node, _ []string) *node {
		if n.rego == nil {
			return nil
		}
		return &node{kind: '"', text: n.rego.Source, at: n.at}
	})
}

// inRegoFile returns a problem at a place in a Rego file.
func (d *Document) inRegoFile(f *RegoFile, line, column int, message string) Problem {
	text := newFile(f.Name, []byte(f.Source))
	return Problem{
		File: f.Name, Place: Place{max(line, 1), max(column, 1)}, Document: d.title(), Field: "condition.rego",
		Message: message, Source: text.line(max(line, 1)),
	}
}

var packageLine = regexp.MustCompile(`(?m)^[ \t]*package\s`)

// clause returns the line of the module's package clause.
func (f *RegoFile) clause() int {
	at := packageLine.FindStringIndex(f.Source)
	if at == nil {
		return 1
	}
	return 1 + strings.Count(f.Source[:at[0]], "\n")
}

// checkPackage returns an error if a rule's Rego file has no package of its author's own.
func (d *Document) checkPackage() error {
	f, ok := d.RegoFile()
	if !ok {
		return nil
	}
	pkg, ok := rego.PackageOf(f.Source)
	first, _, _ := strings.Cut(pkg, ".")
	switch {
	case !ok:
		return &Error{Problems: []Problem{d.inRegoFile(&f, 1, 1,
			"is the body of a rule: begin the file with a package of your own, such as package team.payments, and "+
				"write match if { … }")}}
	case first == "writ" || first == "lib":
		return &Error{Problems: []Problem{d.inRegoFile(&f, f.clause(), 1, fmt.Sprintf(
			"the package %s is writ's: take a package of your own, such as team.payments", pkg))}}
	}
	return nil
}

// CheckPackage returns an *[Error] if the Rego file of d has the package of the file of one of others.
// `opa` would take both for one module. Documents without a Rego file have no effect.
func CheckPackage(d *Document, others []*Document) error {
	f, ok := d.RegoFile()
	if !ok {
		return nil
	}
	pkg, isModule := rego.PackageOf(f.Source)
	if !isModule {
		return nil // Rule reports this
	}
	for _, other := range others {
		theirs, ok := other.RegoFile()
		if !ok {
			continue
		}
		if name, ok := rego.PackageOf(theirs.Source); ok && name == pkg {
			return &Error{Problems: []Problem{d.inRegoFile(&f, f.clause(), 1, fmt.Sprintf(
				"the package %s is also that of %s in %s: give each rule a file and a package of its own", pkg,
				other.title(), theirs.Name))}}
		}
	}
	return nil
}
