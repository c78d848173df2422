// Package index keeps the keys of the history in order. The keys of the newest frames are in
// memory, and all older keys are in Pebble. Keys move to Pebble sorted, the keys of many frames
// together. That costs a fraction of one write for each frame.
//
// # Promises
//
// A key is found by every read that begins after [Index.Add] has returned. A scan sees the keys of
// one moment.
//
// Add writes nothing to the disk. [Index.Flush] makes all keys durable that were added before its
// call. [Index.Indexed] returns the number of the last frame whose keys are durable. After a crash
// the caller adds the keys of all later frames again.
//
// Only keys in Pebble can be deleted. The caller calls Flush first, and then passes a batch of
// deletions to [Index.Write].
//
// Keys that begin with [Meters] are counters. If such a key is added again, the new value replaces
// the old one. Keys that begin with [Counts] have [Sums]. If such a key is added again, its numbers
// are added. Only [Index.Counts] reads them.
//
// Intents have no keys: see [Intents].
//
// Every method returns an error once the store has stopped. A failed write stops the store, because
// it is unknown which part of the write is on the disk.
package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"writ.example/writ/storage"
)

// These are the first bytes of the kinds of keys that are stored differently from all other kinds.
const (
	Counts = 'c'
	Meters = 'm'
)

// Config configures an Index.
type Config struct {
	// DB is the open database in the directory Dir. Options are the options with which it was
	// opened.
	DB      *pebble.DB
	Dir     string
	Options *pebble.Options
	Health  Health
	Log     *slog.Logger
	// Sync makes durable all frames whose keys were added.
	Sync func() error
	// Indexed is a key in DB. Its value is the number of the last frame whose keys are in DB. Mark
	// returns the key that marks a flush up to a frame. The next flush deletes that key.
	Indexed []byte
	Mark    func(frame uint64) []byte
}

// Health is the state of the store.
type Health interface {
	// Stopped returns the error that has stopped the store, or nil.
	Stopped() error
	// Stop ends all use of the store.
	Stop(activity string, err error)
	// Read takes the result of a read. It returns the error for the callers of the store, or nil.
	Read(err error) error
}

// Index has the keys of a store. Its methods may be called concurrently.
type Index struct {
	c    Config
	tail tail
	// flushing is held while keys move to DB. It guards indexed.
	flushing sync.Mutex
	indexed  uint64
	// started is true after Start. moving is true while flushLater's goroutine runs.
	started bool
	moving  atomic.Bool
	// background counts the goroutines. They end after Close has closed stopping.
	background sync.WaitGroup
	stopping   chan struct{}
}

// New returns the index of a database. Its caller adds the keys that are not in the database yet.
func New(c Config) (*Index, error) {
	x := &Index{c: c, tail: tail{memtables: []*memtable{newMemtable()}}, stopping: make(chan struct{})}
	var err error
	if x.indexed, err = x.indexedIn(c.DB); err != nil {
		return nil, err
	}
	return x, nil
}

// indexedIn returns the number of the last frame whose keys are in state, or 0.
func (x *Index) indexedIn(state pebble.Reader) (uint64, error) {
	v, err := x.GetIn(state, x.c.Indexed)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	if err == nil && len(v) != 8 {
		err = errors.New("the number of the last indexed frame is damaged")
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// Add adds the keys of a frame. Frames must be added in their order.
func (x *Index) Add(frame uint64, keys *Keys) {
	x.tail.add(frame, keys)
	x.flushLater()
}

// Get returns a copy of the value of a key, or storage.ErrNotFound.
func (x *Index) Get(k []byte) ([]byte, error) {
	if v, found := x.tail.get(k); found {
		return []byte(v), x.c.Health.Stopped()
	}
	return x.GetIn(x.c.DB, k) // also finds a key that has just moved to DB
}

// GetIn is like Get, but reads only state, for example a batch, and no keys in memory.
func (x *Index) GetIn(state pebble.Reader, k []byte) ([]byte, error) {
	if err := x.c.Health.Stopped(); err != nil {
		return nil, err
	}
	v, closer, err := state.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, cmp.Or(x.c.Health.Read(nil), storage.ErrNotFound)
	}
	if err == nil {
		v = bytes.Clone(v)
		err = closer.Close()
	}
	return v, x.c.Health.Read(err)
}

// Visit takes a key and its value. Both are valid only during the call. If Visit returns stop or an
// error, the scan ends.
type Visit func(k, v []byte) (stop bool, err error)

// Scan calls f in order for the keys from lower up to upper. It includes lower and excludes upper.
func (x *Index) Scan(ctx context.Context, lower, upper []byte, f Visit) error {
	return x.scan(ctx, x.c.DB, lower, upper, (*Iterator).first, f)
}

// ScanBack is like Scan, but goes from the last key to the first.
func (x *Index) ScanBack(ctx context.Context, lower, upper []byte, f Visit) error {
	return x.scan(ctx, x.c.DB, lower, upper, (*Iterator).last, f)
}

// ScanIn is like Scan, but reads only state, for example a batch, and no keys in memory.
func (x *Index) ScanIn(
	ctx context.Context, state pebble.Reader, lower, upper []byte, f Visit,
) error {
	return x.scan(ctx, state, lower, upper, (*Iterator).first, f)
}

func (x *Index) scan(
	ctx context.Context, state pebble.Reader, lower, upper []byte, first func(*Iterator) bool,
	f Visit,
) (err error) {
	o := &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
	var memtables []*memtable
	if state == x.c.DB {
		memtables = x.tail.snapshot(o)
	}
	it, err := x.iterator(state, o, memtables)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := first(it); ok; ok = it.next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := it.value()
		if err != nil {
			return x.c.Health.Read(err)
		}
		if stop, err := f(it.key(), v); stop || err != nil {
			return err
		}
	}
	return x.c.Health.Read(it.pebble.Error())
}

// Start begins the background work. From then on keys move to Pebble whenever memory holds many.
func (x *Index) Start() { x.started = true }

// Write makes a batch durable.
func (x *Index) Write(b *pebble.Batch) error {
	if err := b.Commit(pebble.Sync); err != nil {
		x.c.Health.Stop("writing a batch", err)
	}
	// failStopFS told Pebble that the write succeeded, even if the write failed.
	if err := x.c.Health.Stopped(); err != nil {
		return err
	}
	return b.Close()
}

// Indexed returns the number of the last frame whose keys are in the database.
func (x *Index) Indexed() uint64 {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	return x.indexed
}

// SetIndexed sets the number that Indexed returns. The caller must have given up all later frames.
func (x *Index) SetIndexed(frame uint64) {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	x.indexed = frame
}

func (x *Index) closing() bool {
	select {
	case <-x.stopping:
		return true
	default:
		return false
	}
}

// Close ends the background work. Then it calls Flush, unless the store has stopped. Add must not
// be called afterwards.
func (x *Index) Close() error {
	close(x.stopping)
	x.background.Wait()
	if x.c.Health.Stopped() != nil {
		return nil //nolint:nilerr // the failure was reported when the store stopped
	}
	return x.Flush()
}
