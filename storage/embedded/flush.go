package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The keys of the tail are moved to Pebble in two writes: first all but the meters as
// sorted tables, which Pebble takes in whole, with the link of the last frame; then in a
// batch the meters, the number of that frame, and the deletion of the link before. A crash
// between them has the keys in the tail again, as they are in Pebble. Where Pebble has lost
// tables, the link that the number names is not there, or the one before still is: see
// links.go.

// indexedKey has the number of the last frame whose keys Pebble has.
var indexedKey = key{byte(kindIndexed)}

const (
	// flushedKeys is how many keys of the tail are moved at once, some 50 MB.
	flushedKeys = 1 << 18
	// batchedKeys is how many keys are not worth a table.
	batchedKeys = 1 << 10
)

// flush moves the keys of all frames before the call to Pebble. It rests as p says.
func (s *Store) flush(p *pacer) error {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	if err := s.health.stopped(); err != nil {
		return err
	}
	t := s.tail.freeze()
	for _, tr := range t {
		if tr.frame > 0 {
			if err := s.flushTree(tr, p); err != nil {
				return fmt.Errorf("writing the index of the history: %w", err)
			}
		}
		s.tail.drop()
	}
	return nil
}

// freeze begins another tree and returns those before it, oldest first.
func (t *tail) freeze() []*tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	frozen := slices.Clone(t.trees)
	t.trees = append(t.trees, newTree())
	return frozen
}

// drop removes the oldest tree.
func (t *tail) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trees = slices.Delete(slices.Clone(t.trees), 0, 1)
}

// size returns the number of keys in the last tree.
func (t *tail) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.trees[len(t.trees)-1].len()
}

// flushTree moves the keys of a frozen tree. flushing is held.
func (s *Store) flushTree(t *tree, p *pacer) error {
	if err := s.log.Sync(); err != nil { // with WriteBehind the frames may not be durable
		s.health.stop("syncing the history", err)
		return s.health.stopped()
	}
	b := s.newBatch()
	link := linkKey(headStream, t.frame)
	if t.len() <= batchedKeys {
		t.each(p, func(k, v string) bool {
			b.set(key(k), []byte(v))
			return b.err == nil
		})
		b.set(link, nil)
	} else if err := s.ingest(t, link, p); err != nil {
		return err
	}
	for k, v := range t.meters {
		b.set(key(k), []byte(v))
	}
	b.number(indexedKey, int64(t.frame))
	b.delete(linkKey(headStream, s.indexed))
	err := s.apply(b)
	if err == nil {
		s.indexed = t.frame
	}
	return err
}

// ingest has Pebble take in the keys of t, but for the meters, and link unless it is nil.
// There is a table for each kind of key, so that tables of keys that grow with time overlap
// no others.
func (s *Store) ingest(t *tree, link key, p *pacer) (err error) {
	options := s.options.Clone()
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
			path := s.fs.PathJoin(s.health.dir, fmt.Sprintf("index-%02x.new", last))
			var f vfs.File
			if f, err = s.fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
				w = nil
				return
			}
			paths = append(paths, path)
			w = sstable.NewWriter(objstorageprovider.NewFileWritable(f),
				options.MakeWriterOptions(0, s.db.TableFormat()))
		}
		pair = append(append(pair[:0], k...), v...)
		err = errors.Join(err, w.Set(pair[:len(k):len(k)], pair[len(k):]))
	}
	t.each(p, func(k, v string) bool {
		set(k, v)
		return err == nil
	})
	if err == nil && link != nil {
		set(string(link), "") // which comes after all other keys
	}
	if w != nil {
		err = errors.Join(err, w.Close())
	}
	if err == nil {
		err = s.db.Ingest(context.Background(), paths)
	}
	if stopped := s.health.stopped(); stopped != nil {
		return stopped
	}
	return err
}

// flushLater moves the keys of the tail in the background once they are many.
func (s *Store) flushLater() {
	if s.tail.size() < flushedKeys {
		return
	}
	s.later(&s.flushes, "the index of the history was not written", func() error {
		return s.flush(&pacer{hurry: func() bool { return s.tail.size() >= flushedKeys || closed(s.stopping) }})
	})
}

// later runs f in the background unless it runs already, and logs its failure.
func (s *Store) later(runs *atomic.Bool, failed string, f func() error) {
	if !runs.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer runs.Store(false)
		if err := f(); err != nil {
			s.health.log.Warn(failed+"; it will be tried again", "err", err.Error())
		}
	})
}
