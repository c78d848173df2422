package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
)

// Options configure a Store. A service needs none of them.
type Options struct {
	// FS is the file system of the directory. Nil stands for the operating system's.
	FS vfs.FS
	// Log gets messages for operators. Nil stands for slog.Default().
	Log *slog.Logger
	// MinFreeBytes is the free space below which writes are refused. 0 means 256 MiB, enough for
	// Pebble to flush everything that it has in memory.
	MinFreeBytes uint64
	// WriteBehind is how many commits may have returned and not be durable yet. Further commits
	// wait. 0 means that every commit is durable when it returns. A crash loses at most the last
	// WriteBehind commits. If it loses a commit, it also loses all later commits. Lost decisions
	// were already signed and answered. Their intents can be decided again, and a second head can
	// then follow the same head as a lost one. Writes of documents are always durable when they
	// return.
	WriteBehind int
	// AcceptRollback lets Open open a store that has lost writes. It must be the sequence of the
	// store's last head: see the package's documentation. Nil accepts no loss.
	AcceptRollback *uint64
	// Progress is called during long steps of Open, such as rebuilding the index. done is the part
	// of the step that is done, and of is the whole. When a step ends, Progress is called with an
	// empty step. If Progress is nil, progress is logged.
	Progress func(step string, done, of uint64)
	// Metrics is the registry of the store's metrics. Close unregisters them. Nil means that they
	// are registered nowhere.
	Metrics prometheus.Registerer

	segmentSize int // tests set it; 0 stands for the constant
}

const defaultMinFree = 256 << 20

// Store is a storage.Store in a directory. It must be made by [Open].
type Store struct {
	db      *pebble.DB
	state   pebble.Reader // db, or what a ReadOnly reads
	options *pebble.Options
	// log has the history. tables find items of it.
	log    *segment.Log
	tables *index.Tables
	frames frames
	secret [32]byte // with which names are hashed
	// rewriting is set while the goroutine of rewriteLater runs.
	rewriting atomic.Bool
	// snapshots is locked for reading while a snapshot is used, and by Close.
	snapshots sync.RWMutex
	// rewrites is held for writing while a segment is rewritten, and for reading while a snapshot is made or a [Frozen]
	// is open.
	rewrites sync.RWMutex
	// background counts the goroutines of the store. They end once Close has closed stopping.
	background sync.WaitGroup
	stopping   chan struct{}
	health     *health
	// lock keeps other processes out until Close returns. Pebble would release its own lock
	// earlier. lock is nil until the store is open.
	lock *pebble.Lock
	// closing is a channel that Close closes before it closes Pebble.
	closing chan struct{}

	// writes serializes the writes of documents and removals, which read before they
	// write. Watchers are called while it is held.
	writes sync.Mutex
	// change is the number of the last write of documents or removal. writes guards it.
	change uint64

	// commits serializes appends and guards the fields below. It may be locked while writes is
	// held. writes must not be locked while commits is held.
	commits sync.Mutex
	// tip is the end of the chain.
	tip    receipt.Chain
	quotas quotas
	// newest is the newest time of a head, in Unix milliseconds: see checkClock. It is read without commits.
	newest atomic.Int64
	// entered counts the appends that contained entries and that readers can see.
	entered atomic.Int64
	// kept is the last frame of which Pebble has what follows from it. pending has that of later frames.
	kept    uint64
	pending pending
	// keys and buffers are for building keys and frames.
	keys    key
	buffers frameBuffers

	// recording is held while the tip is recorded. It guards recorded, which is the tip in the
	// file.
	recording sync.Mutex
	recorded  tip

	// async is nil if every commit is durable when it returns.
	async *asyncSync

	// derived serializes the writes of derived values, and guards the number of the last one.
	derived struct {
		sync.Mutex
		writes uint64
	}

	watchers storage.Watchers

	// unregister ends the collection of metrics.
	unregister func()
}

var _ storage.Store = (*Store)(nil)

// Open opens the store in dir and creates dir if it does not exist. One Store at a time
// uses a directory.
func Open(dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = defaultMinFree
	}
	if err := o.FS.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating %s: %w", dir, err)
	}
	lock, err := lockDir(dir, o.FS)
	if err != nil {
		return nil, err
	}
	s, err := open(dir, o, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

func lockDir(dir string, filesystem vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, filesystem)
	if err == nil {
		return lock, nil
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return nil, fmt.Errorf("another writ is using this directory: %s: %w", dir, err)
}

func open(dir string, o Options, lock *pebble.Lock) (*Store, error) {
	h := &health{
		show: o.Progress,
		log:  o.Log, dir: dir, fs: o.FS, minFree: o.MinFreeBytes,
		troubles: make(map[trouble]error),
	}
	if err := errors.Join(h.roomToOpen(), h.canWrite()); err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	if err := o.FS.RemoveAll(snapshotDir(dir)); err != nil {
		return nil, fmt.Errorf("removing an unfinished snapshot: %w", err)
	}
	found, err := check(dir, o, lock)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	s := &Store{health: h, closing: make(chan struct{}), stopping: make(chan struct{}), unregister: func() {},
		tip: newChain()}
	guard := &failStopFS{FS: o.FS, health: h, closing: s.closing}
	s.options = pebbleOptions(guard, h, lock)
	db, err := openPebble(dir, s.options, h)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	s.db, s.state = db, db
	if !found.exists {
		err = s.create()
	}
	if err == nil {
		err = s.openKept()
	}
	if err == nil {
		err = s.openLog(o.FS, cmp.Or(o.segmentSize, segmentSize))
	}
	if err == nil {
		err = s.loadLog(o.FS, found.stale != "")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", dir, err), s.Close())
	}
	if o.WriteBehind > 0 {
		s.startAsyncSync(o.WriteBehind)
	}
	if err = h.Stopped(); err == nil {
		err = errors.Join(s.load(found), s.openDerived(&found), s.register(o.Metrics))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", dir, err), s.Close())
	}
	s.tables.Start(s.removedIntents)
	s.startTipWriter()
	return s, nil
}

// openKept reads the number of the last kept frame.
func (s *Store) openKept() error {
	s.pending.clear()
	kept, err := s.count(keptKey)
	s.kept = uint64(kept) //nolint:gosec // it counts
	return err
}

// syncLog syncs the log. A failure stops the store.
func (s *Store) syncLog() error {
	if err := s.log.Sync(); err != nil {
		s.health.Stop("syncing the history", err)
	}
	return s.health.Stopped()
}

// check inspects dir and returns an error if dir must not be opened. Otherwise it removes the file
// that Close wrote.
func check(dir string, o Options, lock *pebble.Lock) (inspection, error) {
	if err := checkShutdownManifest(dir, o.FS); err != nil {
		return inspection{}, err
	}
	found, err := inspect(dir, o, lock)
	if err == nil {
		err = found.accept(dir, o)
	}
	if err != nil {
		return inspection{}, err
	}
	return found, removeShutdownManifest(dir, o.FS)
}

func (s *Store) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	c := newCollector(s)
	if err := reg.Register(c); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	s.unregister = func() { reg.Unregister(c) }
	return nil
}

// Healthy implements storage.Store.
func (s *Store) Healthy(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.health.writable(); err != nil {
		return err
	}
	s.checkClock()
	return s.health.trouble(trouble.unready)
}

func (s *Store) closeFiles() error {
	var err error
	if s.tables != nil {
		err = s.tables.Close()
	}
	if b, ok := s.state.(*pebble.Batch); ok {
		err = errors.Join(err, b.Close())
	}
	err = errors.Join(err, s.db.Close())
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	return err
}

// Close implements storage.Store.
func (s *Store) Close() error {
	s.unregister()
	close(s.stopping)
	s.snapshots.Lock() // they have ended
	defer s.snapshots.Unlock()
	s.background.Wait()
	var err error
	if s.log != nil && s.health.Stopped() == nil {
		err = s.keep()
	}
	close(s.closing)
	err = errors.Join(err, s.closeFiles())
	if err == nil && s.health.Stopped() == nil {
		if err := writeShutdownManifest(s.health.dir, s.health.fs); err != nil {
			s.health.log.Warn("the next start will not check the storage for damage", "dir", s.health.dir, "err",
				err.Error())
		}
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}
