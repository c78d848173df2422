package embedded

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// walCategory is the category under which Pebble creates its write-ahead log.
const walCategory vfs.DiskWriteCategory = "pebble-wal"

// errStopped is the error of every write after the store has stopped.
var errStopped = errors.New("the store has stopped writing")

// failStopFS stands between Pebble and the disk. It stops the store at the first failure that
// Pebble would not survive. If Pebble cannot write its log or its manifest, it ends the process,
// sometimes with a runtime error that cannot be recovered. It also retries a failed flush without a
// pause. Pebble v2.1.7 also ends the process if opening fails while a compaction runs or is due,
// because the compaction then uses freed objects.
//
// failStopFS calls health.Stop at the first failure to write a log, a directory, or a file that is
// neither a table nor a manifest. After that every read and write of the store returns an error.
// failStopFS tells Pebble that the write succeeded, so that Pebble finishes opening and stays
// intact until it is closed. No commit is acknowledged wrongly, because opening and commits check
// health after Pebble returns. Nothing more is written to the disk. The disk is left as a crash at
// that moment would leave it, and Pebble recovers from a crash at the next start.
//
// failStopFS does not guard methods that Pebble never calls.
type failStopFS struct {
	vfs.FS
	health *health
	// closing is closed to end all pauses.
	closing <-chan struct{}
}

// retryPause is the pause after a failure, because Pebble retries at once.
const retryPause = 20 * time.Millisecond

// Unwrap implements vfs.FS.
func (g *failStopFS) Unwrap() vfs.FS { return g.FS }

// writable returns an error once the store has stopped.
func (g *failStopFS) writable() error {
	if g.health.Stopped() == nil {
		return nil
	}
	return g.paused(errStopped)
}

func (g *failStopFS) paused(err error) error {
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

// orStop runs a write whose failure would end Pebble. If the write fails, orStop stops the store.
// It does not run the write if the store has stopped already.
func (g *failStopFS) orStop(activity string, write func() error) {
	if g.health.Stopped() != nil {
		return
	}
	if err := write(); err != nil {
		g.health.Stop(activity, err)
	}
}

// Create implements vfs.FS.
func (g *failStopFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if g.ofSnapshot(name) {
		return g.FS.Create(name, c)
	}
	create := func() (vfs.File, error) { return g.FS.Create(name, c) }
	if c == walCategory || c == vfs.WriteCategoryUnspecified {
		return g.createLog(create)
	}
	return g.create(create)
}

// ReuseForWrite implements vfs.FS.
func (g *failStopFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	reuse := func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, c) }
	if c == walCategory {
		return g.createLog(reuse)
	}
	return g.create(reuse)
}

func (g *failStopFS) create(open func() (vfs.File, error)) (vfs.File, error) {
	if err := g.writable(); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, g.paused(err)
	}
	return &failStopFile{File: f, fs: g}, nil
}

func (g *failStopFS) createLog(open func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	g.orStop("creating a file", func() (err error) {
		f, err = open()
		return err
	})
	if f == nil {
		f = vfs.NewMemFile(nil)
	}
	return &failStopFile{File: f, fs: g, stops: true}, nil
}

// OpenDir implements vfs.FS.
func (g *failStopFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil || g.ofSnapshot(name) {
		return f, err
	}
	return &failStopFile{File: f, fs: g, stops: true}, nil
}

// List implements vfs.FS. A failure stops the store, because Pebble lists the directory as its last
// step of opening.
func (g *failStopFS) List(dir string) (names []string, _ error) {
	if g.ofSnapshot(dir) {
		return g.FS.List(dir)
	}
	g.orStop("listing the directory", func() (err error) {
		names, err = g.FS.List(dir)
		return err
	})
	return names, nil
}

// Link implements vfs.FS.
func (g *failStopFS) Link(from, to string) error {
	return g.change(func() error { return g.FS.Link(from, to) })
}

// Rename implements vfs.FS.
func (g *failStopFS) Rename(from, to string) error {
	if g.ofSnapshot(to) {
		return g.FS.Rename(from, to)
	}
	g.orStop("renaming a file", func() error { return g.FS.Rename(from, to) })
	return nil
}

// Remove implements vfs.FS.
func (g *failStopFS) Remove(name string) error {
	return g.change(func() error { return g.FS.Remove(name) })
}

func (g *failStopFS) change(f func() error) error {
	if err := g.writable(); err != nil {
		return err
	}
	return f()
}

// failStopFile is a file or directory. stops says that a failed write stops the store. It is set
// for logs and for small files that are written once. It is also set for directories, whose only
// write is Sync.
type failStopFile struct {
	vfs.File
	fs    *failStopFS
	stops bool
}

func (f *failStopFile) write(activity string, write func() error) error {
	if f.stops {
		f.fs.orStop(activity, write)
		return nil
	}
	if err := f.fs.writable(); err != nil {
		return err
	}
	return f.fs.paused(write())
}

func (f *failStopFile) Write(p []byte) (n int, err error) {
	err = f.write("writing the log", func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	if err == nil {
		n = len(p)
	}
	return n, err
}

// Preallocate may fail. Pebble calls it only for speed and ignores the error.
func (f *failStopFile) Preallocate(offset, length int64) error {
	if err := f.fs.health.Stopped(); err != nil {
		return err
	}
	return f.File.Preallocate(offset, length)
}

func (f *failStopFile) Sync() error { return f.write("syncing", f.File.Sync) }

func (f *failStopFile) SyncData() error { return f.write("syncing the log", f.File.SyncData) }

func (f *failStopFile) SyncTo(n int64) (full bool, err error) {
	err = f.write("syncing the log", func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

// Close closes the file even when the store has stopped.
func (f *failStopFile) Close() error {
	err := f.File.Close()
	if !f.stops || err == nil {
		return err
	}
	f.fs.health.Stop("closing the log", err)
	return nil
}
