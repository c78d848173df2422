package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"writ.example/writ/authoring/document"
)

// names has the endings of the file names of suites.
var names = []string{"_test.yaml", "_test.yml", "_test.json"}

func isSuite(name string) bool {
	return slices.ContainsFunc(names, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Paths returns the files of suites in roots. A root is a file or a directory. Without roots it
// searches the current directory.
func Paths(roots []string) (files []string, err error) {
	for _, root := range orHere(roots) {
		info, err := os.Stat(root)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, root)
			continue
		}
		err = filepath.WalkDir(throughLink(root), func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && isSuite(name) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

func orHere(roots []string) []string {
	if len(roots) == 0 {
		return []string{"."}
	}
	return roots
}

// throughLink returns a name for a directory. With this name a walk enters the directory even if
// the directory is a symbolic link.
func throughLink(dir string) string { return filepath.Clean(dir) + string(filepath.Separator) }

// settles is how long files must stay unchanged before suites run again, because editors write a
// file in several steps.
const settles = 25 * time.Millisecond

// Watch runs suites again when one of their files changes.
type Watch struct {
	Roots []string // files and directories, as for [Paths]
	// Run runs suites. Problem gets the reason why a file cannot be read as suites. The file may be
	// corrected later. If Run or Problem returns an error, the watch ends.
	Run     func(context.Context, []*Suite) error
	Problem func(error) error
	// Libraries is the directory of the libraries of suites that name none, or empty.
	Libraries string
	// Every says that each change makes all suites run again, not only the affected ones.
	Every bool

	loader  Loader
	watcher *fsnotify.Watcher
	// files has the files that were read for each suite file. suites has the suites of each suite
	// file.
	files  map[string][]string
	suites map[string][]*Suite
}

// Until runs all suites. After each change it runs the affected suites. It ends when ctx ends.
func (w *Watch) Until(ctx context.Context) (err error) {
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	defer func() { err = errors.Join(err, w.watcher.Close()) }()
	w.files, w.suites = make(map[string][]string), make(map[string][]*Suite)
	w.loader.librariesIn = w.Libraries
	if err := w.watchRoots(); err != nil {
		return err
	}
	paths, err := Paths(w.Roots)
	if err != nil {
		return err
	}
	if err := w.again(ctx, paths); err != nil {
		return err
	}
	return w.loop(ctx)
}

func (w *Watch) loop(ctx context.Context) error {
	changed := map[string]bool{}
	settled := time.NewTimer(0)
	settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.watcher.Errors:
			return fmt.Errorf("watching files: %w", err)
		case event := <-w.watcher.Events:
			if event.Has(fsnotify.Chmod) && !event.Has(fsnotify.Write) {
				continue
			}
			w.entered(event)
			changed[filepath.Clean(event.Name)] = true
			settled.Reset(settles)
		case <-settled.C:
			if err := w.again(ctx, w.touched(changed)); err != nil {
				return err
			}
			clear(changed)
		}
	}
}

// entered watches a newly created directory.
func (w *Watch) entered(event fsnotify.Event) {
	if info, err := os.Stat(event.Name); err == nil && info.IsDir() && event.Has(fsnotify.Create) &&
		(w.below(event.Name) || w.ofLibraries(event.Name)) {
		_ = w.watcher.Add(event.Name) // the directory may already be removed
	}
}

// below reports whether name is in one of the directories that Until searches for suites.
func (w *Watch) below(name string) bool {
	return slices.ContainsFunc(orHere(w.Roots), func(root string) bool { return isBelow(root, name) })
}

// ofLibraries reports whether name is in the directory of the libraries.
func (w *Watch) ofLibraries(name string) bool { return w.Libraries != "" && isBelow(w.Libraries, name) }

func isBelow(root, name string) bool {
	from, err1 := filepath.Abs(root)
	to, err2 := filepath.Abs(name)
	rel, err := filepath.Rel(from, to)
	return errors.Join(err, err1, err2) == nil && filepath.IsLocal(rel)
}

// touched returns the suite files that the changed files affect.
func (w *Watch) touched(changed map[string]bool) []string {
	again := map[string]bool{}
	for path, files := range w.files {
		for _, f := range slices.Concat(files, []string{path}) {
			if changed[filepath.Clean(f)] {
				again[path] = true
			}
		}
	}
	for path, suites := range w.suites {
		for name := range changed {
			uses := func(s *Suite) bool { return s.libraries != "" && isBelow(s.libraries, name) }
			broken := len(suites) == 0 && w.ofLibraries(name)
			if broken || slices.ContainsFunc(suites, uses) {
				again[path] = true
			}
		}
	}
	for name := range changed {
		if isSuite(name) && w.below(name) && w.files[name] == nil {
			again[name] = true
		}
		if ok, _ := filepath.Match("*_test.rego", filepath.Base(name)); ok {
			for path, files := range w.files {
				beside := func(f string) bool { return filepath.Dir(f) == filepath.Dir(name) }
				if slices.ContainsFunc(files, beside) {
					again[path] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(again))
}

// again runs the suites in files.
func (w *Watch) again(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	for _, path := range paths {
		if err := w.load(path); err != nil {
			return err
		}
	}
	if w.Every {
		paths = slices.Sorted(maps.Keys(w.suites))
	}
	var suites []*Suite
	for _, path := range paths {
		suites = append(suites, w.suites[path]...)
	}
	if err := w.Run(ctx, suites); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// load reads the suites of a file, and watches all files that were read for them.
func (w *Watch) load(path string) error {
	suites, err := w.loader.Load(path)
	files := slices.Concat(w.files[path], []string{path})
	var placed *document.Error
	if errors.As(err, &placed) {
		for _, p := range placed.Problems {
			files = append(files, p.File)
		}
	}
	for _, s := range suites {
		files = append(files, s.Files...)
	}
	w.suites[path] = suites
	if errors.Is(err, fs.ErrNotExist) {
		delete(w.files, path)
		delete(w.suites, path)
		return nil
	}
	slices.Sort(files)
	w.files[path] = slices.Compact(files)
	for _, f := range w.files[path] {
		_ = w.watcher.Add(filepath.Dir(f)) // the loader reports missing files
	}
	for _, s := range suites {
		if s.libraries != "" {
			_ = w.watchBelow(s.libraries) // the loader reports a missing directory
		}
	}
	if err != nil {
		return w.Problem(err)
	}
	return nil
}

// watchRoots watches the directories of the suites and the directory of the libraries.
func (w *Watch) watchRoots() error {
	roots := orHere(w.Roots)
	if w.Libraries != "" {
		roots = append(slices.Clone(roots), w.Libraries)
	}
	for _, root := range roots {
		info, err := os.Stat(root)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			continue // load watches this file's directory
		}
		if err := w.watchBelow(root); err != nil {
			return err
		}
	}
	return nil
}

// watchBelow watches a directory and those below it.
func (w *Watch) watchBelow(dir string) error {
	err := filepath.WalkDir(throughLink(dir), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = w.watcher.Add(name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", dir, err)
	}
	return nil
}
