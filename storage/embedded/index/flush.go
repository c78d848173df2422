package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Keys move from memory to Pebble in two writes. The first write has all keys except the meters and the counts. It
// also has the mark, a key that names the last frame. This write consists of sorted tables, which
// Pebble adds without rewriting them. The second write is a batch. It sets the meters, adds the counts, sets the
// number of the last frame, and deletes the previous mark. After a crash between the two writes the
// next start reads the frames again and adds their keys once more. If Pebble has lost tables,
// either the mark for the number is missing, or the previous mark is still there.

const (
	// flushedKeys is how many keys of the tail move together. They take about 50 MB of memory.
	flushedKeys = 1 << 18
	// batchedKeys is the largest number of keys that are written as a batch rather than as tables.
	batchedKeys = 1 << 10
)

// Flush moves the keys that were added before the call to Pebble.
func (x *Index) Flush() error { return x.flush(nil) }

// flush does what Flush does, and pauses as p says.
func (x *Index) flush(p *pacer) error {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	if err := x.c.Health.Stopped(); err != nil {
		return err
	}
	for _, t := range x.tail.freeze() {
		if t.frame > 0 {
			if err := x.flushMemtable(t, p); err != nil {
				return fmt.Errorf("writing the index of the history: %w", err)
			}
		}
		x.tail.drop()
	}
	return nil
}

// freeze begins a new memtable. It returns all earlier memtables, the oldest first.
func (t *tail) freeze() []*memtable {
	t.mu.Lock()
	defer t.mu.Unlock()
	frozen := slices.Clone(t.memtables)
	t.memtables = append(t.memtables, newMemtable())
	return frozen
}

// drop removes the oldest memtable.
func (t *tail) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.memtables = slices.Delete(slices.Clone(t.memtables), 0, 1)
}

// size returns the number of keys in the last memtable.
func (t *tail) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.memtables[len(t.memtables)-1].len()
}

// flushMemtable moves the keys of a frozen memtable to Pebble. The caller holds x.flushing.
func (x *Index) flushMemtable(t *memtable, p *pacer) (err error) {
	if err := x.c.Sync(); err != nil {
		return err
	}
	b, mark := x.c.DB.NewBatch(), x.c.Mark(t.frame)
	set := func(k, v []byte) {
		if err == nil {
			err = b.Set(k, v, nil)
		}
	}
	if t.len() <= batchedKeys {
		t.each(p, func(k, v string) bool {
			set([]byte(k), []byte(v))
			return err == nil
		})
		set(mark, nil)
	} else if err := x.ingest(t, mark, p); err != nil {
		return err
	}
	for k, v := range t.meters {
		set([]byte(k), []byte(v))
	}
	err = cmp.Or(err, t.counters.err)
	for k, sums := range t.counters.byKey {
		if v := sums.Value(); len(v) > 0 && err == nil {
			err = b.Merge([]byte(k), v, nil)
		}
	}
	set(x.c.Indexed, binary.BigEndian.AppendUint64(nil, t.frame))
	if err == nil {
		err = b.Delete(x.c.Mark(x.indexed), nil)
	}
	if err == nil {
		err = x.Write(b)
	}
	if err == nil {
		x.indexed = t.frame
	}
	return err
}

// ingest adds the keys of t, without the meters and the counts, to Pebble as tables. It also adds mark unless mark
// is nil. Each kind of key has its own table. Therefore the tables of kinds whose keys grow with
// time overlap no other table.
func (x *Index) ingest(t *memtable, mark []byte, p *pacer) (err error) {
	options := x.c.Options.Clone()
	options.EnsureDefaults()
	var (
		paths []string
		w     *sstable.Writer
		last  byte
		pair  []byte // a key with its value
	)
	set := func(k, v string) {
		if w == nil || k[0] != last {
			if w != nil {
				err = errors.Join(err, w.Close())
			}
			last = k[0]
			path := x.c.Options.FS.PathJoin(x.c.Dir, fmt.Sprintf("index-%02x.new", last))
			var f vfs.File
			if f, err = x.c.Options.FS.Create(path, vfs.WriteCategoryUnspecified); err != nil {
				w = nil
				return
			}
			paths = append(paths, path)
			w = sstable.NewWriter(objstorageprovider.NewFileWritable(f),
				options.MakeWriterOptions(0, x.c.DB.TableFormat()))
		}
		pair = append(append(pair[:0], k...), v...)
		err = errors.Join(err, w.Set(pair[:len(k):len(k)], pair[len(k):]))
	}
	t.each(p, func(k, v string) bool {
		set(k, v)
		return err == nil
	})
	if err == nil && mark != nil {
		set(string(mark), "") // the mark is greater than all other keys
	}
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		err = x.c.DB.Ingest(context.Background(), paths)
	}
	if stopped := x.c.Health.Stopped(); stopped != nil {
		return stopped
	}
	return err
}

// flushLater starts a goroutine that moves the keys of the tail to Pebble, if there are at least
// flushedKeys.
func (x *Index) flushLater() {
	if !x.started || x.tail.size() < flushedKeys || !x.moving.CompareAndSwap(false, true) {
		return
	}
	x.background.Go(func() {
		defer x.moving.Store(false)
		p := &pacer{hurry: func() bool { return x.tail.size() >= flushedKeys || x.closing() }}
		if err := x.flush(p); err != nil {
			x.c.Log.Warn("the index of the history was not written; it will be tried again", "err", err.Error())
		}
	})
}
