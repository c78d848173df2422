package document

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// ErrNoLibrary says that a directory of libraries has none.
var ErrNoLibrary = errors.New("has no library: want a directory for each, such as net/net.rego")

// Libraries reads the libraries in a directory, as OPA reads it, too: each directory in it is a library,
// and the files in that whose names end in .rego are its modules, but for tests (_test.rego). Nothing
// outside of the directory is read. A directory without a module is no library. The libraries are
// valid, but not compiled.
func Libraries(dir string) (all []engine.Library, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		l, err := readLibrary(root.FS(), e.Name())
		if err != nil {
			return nil, err
		}
		if len(l.Modules) == 0 {
			continue
		}
		if err := l.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, e.Name()), err)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoLibrary)
	}
	return all, nil
}

// LibraryProblems returns the mistakes of a compilation of the libraries in a directory as problems with
// places. It returns any other error as it is.
func LibraryProblems(dir string, err error) error {
	var bad *condition.Error
	if !errors.As(err, &bad) {
		return err
	}
	var all Error
	for _, m := range bad.Mistakes {
		all.Problems = append(all.Problems, Problem{
			File:  filepath.Join(dir, filepath.FromSlash(m.File)),
			Place: Place{max(m.Line, 1), max(m.Column, 1)}, Message: m.Message,
		})
	}
	return &all
}

func readLibrary(files fs.FS, name string) (engine.Library, error) {
	l := engine.Library{Name: name, Modules: map[string]string{}}
	entries, err := fs.ReadDir(files, name)
	if err != nil {
		return l, err
	}
	size := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || path.Ext(e.Name()) != ".rego" || strings.HasSuffix(e.Name(), "_test.rego") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return l, err
		}
		if size += int(info.Size()); size > engine.MaxLibraryBytes {
			return l, fmt.Errorf("%s: the files of a library have at most %d bytes together", name,
				engine.MaxLibraryBytes)
		}
		source, err := fs.ReadFile(files, path.Join(name, e.Name()))
		if err != nil {
			return l, err
		}
		l.Modules[e.Name()] = string(source)
	}
	return l, nil
}
