package embedded

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errReading = errors.New("the directory is only read")

// readOnlyFS refuses everything that would change a file. Its lock leaves the
// file of the lock as it is, too.
type readOnlyFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (r readOnlyFS) Unwrap() vfs.FS { return r.FS }

// Lock implements vfs.FS. A store that is open has its file: where there is none
// nobody has it open.
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
