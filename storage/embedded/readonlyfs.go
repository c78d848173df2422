package embedded

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errReading = errors.New("the directory is only read")

// readOnlyFS returns an error for all changes of files. Its Lock does not change the lock file
// either.
type readOnlyFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (r readOnlyFS) Unwrap() vfs.FS { return r.FS }

// Lock implements vfs.FS. An open store has a lock file. So if the file does not exist, the store
// is not open.
func (r readOnlyFS) Lock(name string) (io.Closer, error) {
	if r.FS != vfs.Default {
		return r.FS.Lock(name)
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockShared(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (readOnlyFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReading }

func (readOnlyFS) Link(string, string) error { return errReading }

func (readOnlyFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReading
}

func (readOnlyFS) Remove(string) error { return errReading }

func (readOnlyFS) RemoveAll(string) error { return errReading }

func (readOnlyFS) Rename(string, string) error { return errReading }

func (readOnlyFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReading
}

func (readOnlyFS) MkdirAll(string, os.FileMode) error { return errReading }
