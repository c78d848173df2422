package embedded

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walCategory is the category under which Pebble creates its write-ahead log.
const walCategory vfs.DiskWriteCategory = "pebble-wal"

// errStopped is what every write gives once the store has stopped.
var errStopped = errors.New("the store has stopped writing")

// guardFS stands between Pebble and the disk, because Pebble ends the process
// when its log or its manifest can't be written, in part with a fatal runtime
// error that nothing can recover, and retries a failed flush without a pause.
// Pebble v2.1.7 ends it as well when opening fails while a compaction is
// running or due: the compaction goes on in what opening has freed.
//
// So the first failure to write the log, a directory or a file that is part of
// neither tables nor manifests stops the store: health.stop is called, which
// makes every later read and write of the store an error, and Pebble is told
// that all went well, so that it ends opening and stays whole until it is closed.
// Nothing is acknowledged on the strength of that lie, because opening and commits
// look at health after Pebble has returned. From then on nothing more reaches the
// disk: it stays as a crash at that moment would have left it, from which
// Pebble recovers at the next start.
type guardFS struct {
	vfs.FS
	health *health
	// closing ends the pauses.
	closing <-chan struct{}
}

// retryPause slows down what Pebble repeats after a failure.
const retryPause = 20 * time.Millisecond

// Unwrap implements vfs.FS.
func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// before returns an error when nothing may be written any more.
func (g *guardFS) before() error {
	if g.health.stopped() == nil {
		return nil
	}
	return g.failed(errStopped)
}

// failed passes err on, after a pause.
func (g *guardFS) failed(err error) error {
	if err == nil {
		return nil
	}
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-g.closing:
	}
	return err
}

// last runs a write whose failure Pebble would not survive, and stops the store
// when it fails. Once it has stopped, it writes nothing.
func (g *guardFS) last(activity string, write func() error) {
	if g.health.stopped() != nil {
		return
	}
	if err := write(); err != nil {
		g.health.stop(activity, err)
	}
}

// Create implements vfs.FS.
func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	create := func() (vfs.File, error) { return g.FS.Create(name, c) }
	if c == walCategory || c == vfs.WriteCategoryUnspecified {
		return g.createLog(create)
	}
	return g.create(name, create)
}

// OpenReadWrite implements vfs.FS.
func (g *guardFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.create(name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, opts...) })
}

// ReuseForWrite implements vfs.FS.
func (g *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	reuse := func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, c) }
	if c == walCategory {
		return g.createLog(reuse)
	}
	return g.create(to, reuse)
}

func (g *guardFS) create(name string, open func() (vfs.File, error)) (vfs.File, error) {
	if err := g.before(); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, g.failed(err)
	}
	file := guardFile{File: f, fs: g}
	if filepath.Ext(name) == blobExt {
		return &guardBlob{guardFile: file}, nil
	}
	return &file, nil
}

func (g *guardFS) createLog(open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	g.last("creating a file", func() (err error) {
		f, err = open()
		return err
	})
	if f == nil {
		f = vfs.NewMemFile(nil)
	}
	return &guardLog{File: f, fs: g}, nil
}

// OpenDir implements vfs.FS.
func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardLog{File: f, fs: g}, nil
}

// List implements vfs.FS. Pebble lists the directory last before it has opened.
func (g *guardFS) List(dir string) (names []string, _ error) {
	g.last("listing the directory", func() (err error) {
		names, err = g.FS.List(dir)
		return err
	})
	return names, nil
}

// Link implements vfs.FS.
func (g *guardFS) Link(from, to string) error {
	return g.change(func() error { return g.FS.Link(from, to) })
}

// Rename implements vfs.FS.
func (g *guardFS) Rename(from, to string) error {
	g.last("renaming a file", func() error { return g.FS.Rename(from, to) })
	return nil
}

// Remove implements vfs.FS.
func (g *guardFS) Remove(name string) error {
	return g.change(func() error { return g.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (g *guardFS) RemoveAll(name string) error {
	return g.change(func() error { return g.FS.RemoveAll(name) })
}

func (g *guardFS) change(f func() error) error {
	if err := g.before(); err != nil {
		return err
	}
	return f()
}

// guardFile is a file that is neither the log nor a directory.
type guardFile struct {
	vfs.File
	fs *guardFS
}

func (f *guardFile) Write(p []byte) (int, error) {
	if err := f.fs.before(); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	return n, f.fs.failed(err)
}

func (f *guardFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.fs.before(); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(p, at)
	return n, f.fs.failed(err)
}

func (f *guardFile) Sync() error { return f.sync(f.File.Sync) }

func (f *guardFile) SyncData() error { return f.sync(f.File.SyncData) }

func (f *guardFile) SyncTo(n int64) (full bool, err error) {
	err = f.sync(func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

func (f *guardFile) sync(sync func() error) error {
	if err := f.fs.before(); err != nil {
		return err
	}
	return f.fs.failed(sync())
}

// guardLog is a file of the log, a directory, whose only write is Sync, or a small
// file that is written once.
type guardLog struct {
	vfs.File
	fs *guardFS
}

func (f *guardLog) Write(p []byte) (int, error) {
	f.fs.last("writing the log", func() error {
		_, err := f.File.Write(p)
		return err
	})
	return len(p), nil
}

func (f *guardLog) WriteAt(p []byte, at int64) (int, error) {
	f.fs.last("writing the log", func() error {
		_, err := f.File.WriteAt(p, at)
		return err
	})
	return len(p), nil
}

// Preallocate may fail: Pebble asks for speed only and ignores the error.
func (f *guardLog) Preallocate(offset, length int64) error {
	if err := f.fs.health.stopped(); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *guardLog) Sync() error {
	f.fs.last("syncing", f.File.Sync)
	return nil
}

func (f *guardLog) SyncData() error {
	f.fs.last("syncing the log", f.File.SyncData)
	return nil
}

func (f *guardLog) SyncTo(n int64) (full bool, err error) {
	f.fs.last("syncing the log", func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, nil
}

// Close closes the file even when the store has stopped.
func (f *guardLog) Close() error {
	if err := f.File.Close(); err != nil {
		f.fs.health.stop("closing the log", err)
	}
	return nil
}
