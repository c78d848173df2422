package suite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// libraries are the libraries that the rules of a suite import.
type libraries struct {
	compiled engine.Libraries // nil if there are none
	// dir is the directory that they were read from, or empty. sum is the digest of its sources.
	dir string
	sum [sha256.Size]byte
}

// readLibraries reads the libraries of a suite. The libraries with the same sources are compiled once.
func (r *reader) readLibraries(f *File) {
	dir := filepath.FromSlash(f.Libraries)
	switch {
	case dir == "" && r.loader.librariesIn == "":
		r.libraries.compiled = r.loader.Libraries
		return
	case dir == "":
		dir = r.loader.librariesIn
	case !filepath.IsAbs(dir):
		dir = filepath.Join(filepath.Dir(r.path), dir)
	}
	all, err := document.Libraries(dir)
	var unreadable *fs.PathError
	switch {
	case errors.As(err, &unreadable):
		r.refuse("libraries", "reading %s: %v", dir, unreadable.Err)
		return
	case err != nil:
		r.refuse("libraries", "%v", err)
		return
	}
	h := sha256.New()
	for i := range all {
		_, _ = fmt.Fprintf(h, "%q %q\n", all[i].Name, all[i].Modules)
		for _, file := range all[i].Files() {
			r.files = append(r.files, filepath.Join(dir, all[i].Name, file))
		}
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	compiled := r.loader.libraries[sum]
	if compiled == nil {
		if compiled, err = rego.CompileLibraries(all); err != nil {
			r.add(document.LibraryProblems(dir, err))
			return
		}
		if r.loader.libraries == nil {
			r.loader.libraries = make(map[[sha256.Size]byte]engine.Libraries)
		}
		r.loader.libraries[sum] = compiled
	}
	r.libraries = libraries{compiled, dir, sum}
}
