package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"writ/authoring/document"
	"writ/authoring/suite"
)

// settles is how long files have to stay as they are before suites run again: editors
// write a file in several steps.
const settles = 25 * time.Millisecond

// watch runs suites again whenever a file changes that they are read from.
type watch struct {
	*testCmd
	s       streams
	loader  *suite.Loader
	watcher *fsnotify.Watcher
	// files are those that the suites in a file were read from, and suites what was read.
	files  map[string][]string
	suites map[string][]*suite.Suite
}

// watch runs the suites, and then those that a change touches, until ctx ends.
func (c *testCmd) watch(ctx context.Context, s streams) (err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	defer func() { err = errors.Join(err, watcher.Close()) }()
	w := &watch{testCmd: c, s: s, loader: new(suite.Loader), watcher: watcher, files: map[string][]string{},
		suites: map[string][]*suite.Suite{}}
	if err := w.watchRoots(); err != nil {
		return err
	}
	paths, err := suitePaths(c.Paths)
	if err != nil {
		return err
	}
	if err := w.run(ctx, paths); err != nil {
		return err
	}
	return w.loop(ctx)
}

func (w *watch) loop(ctx context.Context) error {
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
			if err := w.run(ctx, w.touched(changed)); err != nil {
				return err
			}
			clear(changed)
		}
	}
}

// entered watches a directory that was made.
func (w *watch) entered(event fsnotify.Event) {
	if info, err := os.Stat(event.Name); err == nil && info.IsDir() && event.Has(fsnotify.Create) &&
		w.below(event.Name) {
		_ = w.watcher.Add(event.Name) // it may be gone
	}
}

// below reports whether a name is in a directory that is searched for suites.
func (w *watch) below(name string) bool {
	return slices.ContainsFunc(w.roots(), func(root string) bool {
		rel, err := filepath.Rel(root, name)
		return err == nil && filepath.IsLocal(rel)
	})
}

func (w *watch) roots() []string {
	if len(w.Paths) == 0 {
		return []string{"."}
	}
	return w.Paths
}

// touched returns the files of the suites that have to run again.
func (w *watch) touched(changed map[string]bool) []string {
	again := map[string]bool{}
	for path, files := range w.files {
		for _, f := range slices.Concat(files, []string{path}) {
			if changed[filepath.Clean(f)] {
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

// run runs the suites in files. What is wrong with them is shown, and mended later.
func (w *watch) run(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	started := time.Now()
	for _, path := range paths {
		if err := w.load(path); err != nil {
			return err
		}
	}
	if w.options().Coverage {
		paths = slices.Sorted(maps.Keys(w.suites))
	}
	var suites []*suite.Suite
	for _, path := range paths {
		suites = append(suites, w.suites[path]...)
	}
	report, err := suite.Run(ctx, suites, w.options())
	switch err := reportProblems(w.s, err); {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was interrupted
	case errors.Is(err, errReportedInvalid):
		return nil
	case err != nil:
		return err
	}
	report.WriteText(w.s.out)
	fmt.Fprintf(w.s.out, "%d cases in %v; waiting for changes\n", len(report.Results),
		time.Since(started).Round(time.Millisecond))
	return nil
}

// load reads the suites in a file, and watches what they are read from.
func (w *watch) load(path string) error {
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
		_ = w.watcher.Add(filepath.Dir(f)) // what does not exist is said by the loader
	}
	if err := reportProblems(w.s, err); err != nil && !errors.Is(err, errReportedInvalid) {
		return err
	}
	return nil
}

// watchRoots watches the directories that are searched for suites.
func (w *watch) watchRoots() error {
	for _, root := range w.roots() {
		if info, err := os.Stat(root); err == nil && !info.IsDir() {
			continue // its directory is watched with it
		}
		err := filepath.WalkDir(throughLink(root), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = w.watcher.Add(name)
			}
			return err
		})
		if err != nil {
			return &inputError{name: root, err: err}
		}
	}
	return nil
}
