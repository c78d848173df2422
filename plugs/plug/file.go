package plug

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// newFile begins the names of files that are being written.
const newFile = ".writ-new-"

// WriteFile writes a file, whole or not at all. Unless it may replace one, a file of that name is an error,
// fs.ErrExist.
func WriteFile(name string, data []byte, mode fs.FileMode, replace bool) error {
	f, err := os.CreateTemp(filepath.Dir(name), newFile) // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		if replace {
			err = os.Rename(f.Name(), name)
		} else {
			err = os.Link(f.Name(), name)
		}
	}
	if err == nil && replace {
		return nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}
