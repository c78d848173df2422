package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns path itself if path is a file. If it is a directory, Files returns the .yaml, .yml
// and .json files below it, sorted by name. It skips names that begin with a dot.
func Files(path string) ([]string, error) {
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
		if name == path || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// WriteFile writes a file atomically: after a crash the file has either the old or the new content.
// It keeps the file's permissions.
func WriteFile(name string, data []byte) (err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
