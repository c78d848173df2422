package plug

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// newFile begins the names of files that are being written.
const newFile = ".writ-new-"

// maxFile is more than a file of a plug ever has.
const maxFile = 64 << 20

// ReadFile reads a file that WriteFile has written. Anything else that has its name, such as a pipe, is an error.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is no file of a plug: remove it", name)
	}
	return os.ReadFile(name)
}

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
