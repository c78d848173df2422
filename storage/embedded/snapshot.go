package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// Tip is the position of a store's last write, as the file beside the store records it.
type Tip = tip

// ParseTip reads the content of the file that records a tip.
func ParseTip(text []byte) (Tip, error) { return parseTip(text) }

// Snapshot is the state of a store at one moment.
type Snapshot struct {
	Tip
	Chain [16]byte
	// Text is the content of the file that records the tip.
	Text []byte
}

// snapshotExt is the end of the name of the directory in which Snapshot works. It is beside the store, so that files
// can be linked into it.
const snapshotExt = ".snapshot"

// snapshotRoom is how much must be free beyond the reserve before a snapshot is made. A snapshot copies Pebble's log
// and the active segment, and links all other files.
const snapshotRoom = 4*(16<<20) + segmentSize

// snapshotDir is where snapshots of the store in dir are made.
func snapshotDir(dir string) string { return filepath.Clean(dir) + snapshotExt }

// Snapshot calls f with a directory that has the state of the store at one moment. f must not change the files: many of
// them are links to the files of the store. The directory is removed when f returns. It can be opened as a store after
// a crash can be. Commits wait while Pebble's checkpoint is made, and go on while f runs. Calls must not overlap.
// Close ends the context of f and waits for f.
func (s *Store) Snapshot(
	ctx context.Context, f func(ctx context.Context, dir string, at Snapshot) error,
) (err error) {
	s.snapshots.RLock()
	defer s.snapshots.RUnlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ended:
		}
	}()
	select {
	case <-s.stopping:
		return errClosing
	default:
	}
	dir := snapshotDir(s.health.dir)
	if err := s.health.fs.RemoveAll(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.health.fs.RemoveAll(dir)) }()
	at, err := s.snapshot(ctx, dir)
	if err != nil {
		return fmt.Errorf("making a snapshot of the store: %w", err)
	}
	return f(ctx, dir, at)
}

func (s *Store) snapshot(ctx context.Context, dir string) (at Snapshot, err error) {
	if free, err := s.health.free(); err != nil {
		return at, err
	} else if need := s.health.minFree + snapshotRoom; free < need {
		return at, fmt.Errorf("%d bytes are free, want %d", free, need)
	}
	// A segment that is rewritten after the checkpoint lacks rows whose removal the checkpoint does not have.
	s.rewrites.RLock()
	defer s.rewrites.RUnlock()
	at, segments, err := s.checkpoint(ctx, dir)
	if err != nil {
		return at, err
	}
	for _, seg := range segments {
		if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
			return at, err
		}
		to := s.health.fs.PathJoin(dir, s.health.fs.PathBase(seg.Name))
		if seg.Sealed {
			err = vfs.LinkOrCopy(s.health.fs, seg.Name, to)
			table := vfs.LinkOrCopy(s.health.fs, index.TableName(seg.Name), index.TableName(to))
			if !errors.Is(table, os.ErrNotExist) { // it is not written yet, and is made again
				err = errors.Join(err, table)
			}
		} else {
			err = copyStart(s.health.fs, seg.Name, to, seg.Bytes)
		}
		if err != nil {
			return at, err
		}
	}
	return at, syncDir(dir, s.health.fs)
}

// checkpoint makes a checkpoint of Pebble, and returns the tip and the segments of that moment. Later frames do not
// belong to the snapshot: they could name changes of documents that the checkpoint lacks.
func (s *Store) checkpoint(ctx context.Context, dir string) (at Snapshot, segments []segment.Segment, err error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := errors.Join(ctx.Err(), s.health.writable(), s.syncLog()); err != nil {
		return at, nil, err
	}
	at.Tip = tip{Head: s.tip.Seq, Hash: s.tip.Prev, Frame: s.log.Last(), Change: s.change}
	at.Chain, at.Text = s.tip.ID, at.text()
	return at, s.log.Segments(), s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// copyStart copies the first n bytes of a file, durably.
func copyStart(fs vfs.FS, from, to string, n int64) error {
	in, err := fs.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, n)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// ofSnapshot reports whether a file belongs to a snapshot. If it cannot be written, the store goes on.
func (g *failStopFS) ofSnapshot(name string) bool {
	dir := snapshotDir(g.health.dir)
	return name == dir || strings.HasPrefix(name, dir+string(filepath.Separator))
}
