package decisionlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// File is a sink that appends lines to a file. Send returns after fsync. If somebody renames or
// removes the file, the next Send makes a new file at its path. No other process may write to the file.
type File struct {
	path string
	f    *os.File
	buf  []byte
}

// OpenFile opens the file at path, or makes it. If the file ends within a line, as after a crash, OpenFile
// cuts off the unfinished line. Its row is sent again.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	return f, f.open()
}

func (f *File) open() error {
	opened, err := os.OpenFile(f.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := f.prepare(opened); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.path, err), opened.Close())
	}
	f.f = opened
	return nil
}

func (f *File) prepare(opened *os.File) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file")
	}
	if err := lock(opened); err != nil {
		return fmt.Errorf("another process writes to it: %w", err)
	}
	size, err := lines(opened, info.Size())
	if err == nil && size < info.Size() {
		err = opened.Truncate(size)
	}
	return errors.Join(err, syncDir(filepath.Dir(f.path)))
}

// lines returns the size of a file without an unfinished line at its end.
func lines(file io.ReaderAt, size int64) (int64, error) {
	part := make([]byte, 64<<10)
	for size > 0 {
		n := min(int64(len(part)), size)
		if _, err := file.ReadAt(part[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Send implements [Sink]. After a failed write it removes the part of rows that was written.
func (f *File) Send(_ context.Context, rows []Row) error {
	if err := f.reopen(); err != nil {
		return err
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.buf = appendLines(f.buf[:0], rows)
	if _, err := f.f.Write(f.buf); err != nil {
		return errors.Join(err, f.f.Truncate(info.Size()))
	}
	if err := f.f.Sync(); err != nil { // the disk may have any part of rows
		return errors.Join(err, f.f.Truncate(info.Size()), f.Close())
	}
	return nil
}

func appendLines(dst []byte, rows []Row) []byte {
	for i := range rows {
		dst = append(append(dst, rows[i].JSON...), '\n')
	}
	return dst
}

// reopen opens the file at the path if it is not the open one.
func (f *File) reopen() error {
	if f.f != nil {
		open, err := f.f.Stat()
		if err != nil {
			return err
		}
		there, err := os.Stat(f.path)
		if err == nil && os.SameFile(open, there) {
			return nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return f.open()
}

// Close implements [Sink].
func (f *File) Close() error {
	if f.f == nil {
		return nil
	}
	closed := f.f
	f.f = nil
	return closed.Close()
}
