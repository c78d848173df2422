package embedded

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var errReading = errors.New("the directory is only read")

// readingFS refuses everything that would change a file. Its lock leaves the
// file of the lock as it is, too.
type readingFS struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (r readingFS) Unwrap() vfs.FS { return r.FS }

// Lock implements vfs.FS. A store that is open has its file: where there is none
// nobody has it open.
func (r readingFS) Lock(name string) (io.Closer, error) {
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

func (readingFS) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errReading }

func (readingFS) Link(string, string) error { return errReading }

func (readingFS) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errReading
}

func (readingFS) Remove(string) error { return errReading }

func (readingFS) RemoveAll(string) error { return errReading }

func (readingFS) Rename(string, string) error { return errReading }

func (readingFS) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errReading
}

func (readingFS) MkdirAll(string, os.FileMode) error { return errReading }
