package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns path itself if path is a file. If it is a directory, Files returns the .yaml, .yml
// and .json files below it, and those with other given extensions, sorted by name. It skips names that
// begin with a dot.
func Files(path string, others ...string) ([]string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Clean(path) + string(filepath.Separator) // a walk enters even a link then
	}
	var names []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		hidden := name != path && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case hidden || entry.IsDir():
			return nil
		}
		if name == path || slices.Contains(append(others, ".yaml", ".yml", ".json"), filepath.Ext(name)) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// inside calls f with the directory of the workspace and each name relative to it. Nothing outside
// the directory is written through that root, whatever the names and the links below it say.
func (w *Workspace) inside(names []string, f func(root *os.Root, name, inside string) error) (err error) {
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range names {
		inside, err := filepath.Rel(w.dir, name)
		if err == nil {
			err = f(root, name, inside)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWritable returns an error if one of the named files cannot be changed. Like git, writ does
// not write through a symbolic link, even if it leads to another name in the directory. It does not
// replace a file that it has not read: where names that differ in case are one file, that file may
// have other documents.
func (w *Workspace) checkWritable(names []string) error {
	return w.inside(names, func(root *os.Root, name, inside string) error {
		parts := strings.Split(inside, string(filepath.Separator))
		for i := range parts {
			info, err := root.Lstat(filepath.Join(parts[:i+1]...))
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%s: nothing is written through a symbolic link: replace it by a file or a directory",
					filepath.Join(w.dir, filepath.Join(parts[:i+1]...)))
			}
		}
		if _, known := w.texts[name]; !known {
			return fmt.Errorf("%s: there is a file of that name, which was not read: rename it", name)
		}
		return nil
	})
}

// WriteFile writes a file atomically: after a crash the file has either the old or the new content.
// It keeps the file's permissions. If name is a symbolic link, WriteFile writes the file to which
// the link leads.
func WriteFile(name string, data []byte) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return replace(root, filepath.Base(name), data)
}

// replace writes a file below root atomically, and makes its directories. It keeps the file's
// permissions. Another hard link to the file keeps the old content.
func replace(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(name), "."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if info, old := root.Lstat(name); old == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(temporary))
	}
	return err
}
