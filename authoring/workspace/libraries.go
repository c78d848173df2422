package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

const (
	librariesPath = "/v1/libraries"
	// librariesDir is the directory of the libraries. OPA needs no flag to find their packages there.
	librariesDir = "lib"
	// recordName is the name of the file with a library's [record]. Neither OPA nor writ reads it as a
	// document.
	recordName = ".pulled"
)

func libraryPath(name string) string { return librariesPath + "/" + url.PathEscape(name) }

// record has the members that the server adds to a library.
type record struct {
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// record returns the name of the file with the library's record.
func (l *Local) record() string { return filepath.Join(l.dir, recordName) }

// openLibraries reads and compiles the libraries of the directory. It returns options with which
// rules may import them.
func (w *Workspace) openLibraries(o engine.Options) (engine.Options, error) {
	dir := filepath.Join(w.dir, librariesDir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	all, err := document.Libraries(dir)
	if errors.Is(err, document.ErrNoLibrary) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if w.compiled, err = rego.CompileLibraries(all); err != nil {
		return o, document.LibraryProblems(dir, err)
	}
	o.Libraries = w.compiled
	for i := range all {
		l := &Local{library: &all[i], dir: filepath.Join(dir, all[i].Name)}
		for file, source := range l.library.Modules {
			w.texts[filepath.Join(l.dir, file)] = []byte(source)
		}
		if err := w.readRecord(l); err != nil {
			return o, err
		}
		w.libraries = append(w.libraries, l)
	}
	return o, nil
}

// readRecord reads what the server said of a library that was pulled or pushed.
func (w *Workspace) readRecord(l *Local) error {
	return w.inside([]string{l.record()}, func(root *os.Root, name, inside string) error {
		data, err := root.ReadFile(inside)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		var r record
		if err := json.Unmarshal(data, &r, json.RejectUnknownMembers(true)); err != nil {
			return fmt.Errorf("%s: want it as writ pull wrote it: delete it, and pull: %w", name, err)
		}
		l.library.Version, l.library.CreatedAt, l.library.UpdatedAt = r.Version, r.CreatedAt, r.UpdatedAt
		w.texts[name] = data
		return nil
	})
}

// fetchLibraries reads the libraries with their modules.
func (s *Server) fetchLibraries(ctx context.Context, call Call) error {
	type summary struct {
		Name string `json:"name"`
	}
	err := Pages(ctx, call, librariesPath, func(page Page[summary]) error {
		for _, l := range page.Data {
			s.libraries = append(s.libraries, engine.Library{Name: l.Name})
		}
		return nil
	})
	for i := 0; i < len(s.libraries) && err == nil; i++ {
		l := &s.libraries[i]
		name := l.Name
		_, err = call(ctx, Request{Method: http.MethodGet, Path: libraryPath(name), Want: http.StatusOK}, l)
		if err == nil && l.Name != name {
			err = fmt.Errorf("the server answers with the library %.80q to a request for %.80q", l.Name, name)
		}
	}
	return err
}

// checkLibraries returns an error if a library is not well-formed. A pull makes file names from the names
// of the library and of its modules.
func (s *Server) checkLibraries() error {
	names := make(map[string]bool)
	for i := range s.libraries {
		l := &s.libraries[i]
		if err := l.Validate(); err != nil {
			return fmt.Errorf("the server has a library with the name %.80q: %w", l.Name, err)
		}
		if names[l.Name] {
			return fmt.Errorf("the server lists library %s twice", l.Name)
		}
		names[l.Name] = true
	}
	return nil
}

// library returns the library called name, or nil.
func (s *Server) library(name string) *engine.Library {
	i := slices.IndexFunc(s.libraries, func(l engine.Library) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &s.libraries[i]
}

// library returns the library called name, or nil.
func (w *Workspace) library(name string) *Local {
	i := slices.IndexFunc(w.libraries, func(l *Local) bool { return l.library.Name == name })
	if i < 0 {
		return nil
	}
	return w.libraries[i]
}

// libraryValue returns the members of a library that are compared.
func libraryValue(l *engine.Library) jsontext.Value {
	return encode(map[string]any{"modules": l.Modules})
}

// compareLibrary compares a library with found, the library of the same name on the server. found
// may be nil.
func compareLibrary(l *Local, found *engine.Library) Change {
	is := l.library
	c := Change{
		Kind: document.Library, Name: is.Name, Place: l.place(), State: Added, local: l, library: found,
	}
	if found == nil {
		return c
	}
	c.byName = !is.CreatedAt.Equal(found.CreatedAt)
	c.compare(libraryValue(found), libraryValue(is), !is.UpdatedAt.Equal(found.UpdatedAt))
	return c
}

// sortByImports puts each library after those that it imports. A library imports, directly and
// through others, more libraries than one of those does.
func sortByImports(all []Change, compiled engine.Libraries) {
	slices.SortStableFunc(all, func(a, b Change) int {
		return cmp.Compare(len(compiled.Imports(a.Name)), len(compiled.Imports(b.Name)))
	})
}

// sortDeleted moves the libraries to the end, each before those that it imports. If the server's
// libraries do not compile, they keep their order, and the server says which is in use.
func (s *Server) sortDeleted(all []Change) {
	count := func(Change) int { return 0 }
	if compiled, err := rego.CompileLibraries(s.libraries); err == nil {
		count = func(c Change) int { return len(compiled.Imports(c.Name)) }
	}
	slices.SortStableFunc(all, func(a, b Change) int {
		if a.Kind != document.Library || b.Kind != document.Library {
			return cmp.Compare(deletedLast(a), deletedLast(b))
		}
		return cmp.Compare(count(b), count(a))
	})
}

func deletedLast(c Change) int {
	if c.Kind == document.Library {
		return 1
	}
	return 0
}

// pushLibrary stores the library of the files on the server. If no file has the library, it deletes
// the library there.
func (c *Change) pushLibrary(ctx context.Context, call Call) error {
	r := Request{Path: libraryPath(c.Name)}
	if c.library != nil {
		r.IfMatch = string(encode(c.library.UpdatedAt))
	}
	if c.local != nil {
		r.Body = map[string]any{"modules": c.local.library.Modules}
		c.library = new(engine.Library)
	}
	return c.put(ctx, call, r, c.library)
}

// libraryFacts returns the contents of the libraries' records, by file name. It leaves out a record that
// came from another server, so that the record stays.
func libraryFacts(all []Change) map[string]string {
	files := make(map[string]string)
	for _, c := range all {
		if c.Kind != document.Library {
			continue
		}
		if is := c.local.library; is.CreatedAt.IsZero() || is.CreatedAt.Equal(c.library.CreatedAt) {
			files[c.local.record()] = recordOf(c.library)
		}
	}
	return files
}

func recordOf(l *engine.Library) string {
	return string(encode(record{l.Version, l.CreatedAt, l.UpdatedAt})) + "\n"
}

// pulls reports whether a pull changes the files of a library.
func (c Change) pulls(o PullOptions) bool {
	switch c.State {
	case Missing:
		return true
	case Added:
		return o.Prune && c.local.pulled()
	}
	return o.Force
}

// storeLibrary adds the files of the server's library to files. A file that the library does not
// have is empty there: it is removed. If the server has no such library, all are.
func (w *Workspace) storeLibrary(c Change, files map[string]string) {
	dir := filepath.Join(w.dir, librariesDir, c.Name)
	if c.local != nil {
		for file := range c.local.library.Modules {
			files[filepath.Join(dir, file)] = ""
		}
		files[filepath.Join(dir, recordName)] = ""
	}
	if c.library == nil {
		return
	}
	for file, source := range c.library.Modules {
		files[filepath.Join(dir, file)] = source
	}
	files[filepath.Join(dir, recordName)] = recordOf(c.library)
}
