package embedded

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// reindex writes again the keys of all frames up to the last indexed frame. Pebble can lose tables
// of keys without an error, although the segments and the documents are whole: see streams.go.
// Intents with the leaves of removed rows are not in the segments, so reindex keeps them. It does
// not lower a meter, because the segments may lack removed rows.
func (s *Store) reindex() error {
	r := reindexer{s: s, rebuild: s.index.Rebuild(), indexed: s.index.Indexed(), months: make(map[meter]int64),
		progress: s.health.begin("rebuilding the index of the history", s.index.Indexed())}
	defer r.progress.end()
	err := r.findRemoved()
	if err == nil {
		err = s.log.Scan(context.Background(), 1, r.frame)
	}
	if err == nil || errors.Is(err, errReindexed) {
		err = r.finish()
	}
	if err != nil {
		return fmt.Errorf("rebuilding the index of the history: %w", err)
	}
	return nil
}

// errReindexed ends a scan.
var errReindexed = errors.New("all frames are indexed")

type reindexer struct {
	s       *Store
	rebuild *index.Rebuild
	indexed uint64 // the last indexed frame
	keys    frameKeys
	removed index.Filter // of the intents of removed rows
	months  map[meter]int64
	// abandoned has deletions: the keys of the imported rows that the current frame abandons.
	abandoned *batch
	progress  *progress
}

func (r *reindexer) findRemoved() error {
	return r.s.removedIntents(r.removed.Add)
}

// frame adds the keys of a frame to rebuild.
func (r *reindexer) frame(stored segment.Frame) error {
	if stored.Number > r.indexed {
		return errReindexed
	}
	f, err := decodeFrame(stored)
	if err != nil {
		return err
	}
	r.keys.begin(f)
	if err := r.add(); err != nil {
		return err
	}
	r.abandoned = r.s.newBatch()
	if err := f.each(func(i int, it *item) error { return r.item(f, i, it) }); err != nil {
		return err
	}
	if err := r.s.apply(r.abandoned); err != nil {
		return err
	}
	r.progress.tell(f.number)
	return nil
}

// add adds r.keys to rebuild and empties r.keys.
func (r *reindexer) add() error {
	defer r.keys.Reset()
	return r.rebuild.Add(&r.keys.Keys)
}

// item adds the keys of an item to rebuild, unless its row was removed.
func (r *reindexer) item(f *frame, i int, it *item) (err error) {
	kept := true
	switch it.kind {
	case abandonedItem:
		return r.abandon(it)
	case tombstoneItem:
		kept, err = r.stays(it.org, it.intent)
	case recordItem:
		var row *storage.Record
		if row, err = parseRecord(it.org, it.id, []byte(it.body), nil); err == nil {
			kept, err = r.stays(it.org, row.IntentKey())
		}
	case settlementItem: // the record of the settlement came before
		if kept = r.rebuild.Has(recordKey(it.org, it.id)); !kept {
			var gone bool
			gone, err = r.s.gone(it)
			kept = !gone
		}
	}
	if err == nil {
		err = r.keys.item(f, i, it, r.months)
	}
	if err == nil && kept {
		err = r.add()
	}
	r.keys.Reset()
	return err
}

// stays reports whether the row of an intent was not removed.
func (r *reindexer) stays(org, intent string) (bool, error) {
	if r.removed.Lacks(r.s.hashOf(org, intent)) {
		return true, nil
	}
	_, err := r.s.index.Get(orgKey(kindIntent, org).text(intent))
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// abandon deletes the keys of an imported row that was abandoned. The row may have been imported
// again later. If retention has removed it after that, its tombstone stays.
func (r *reindexer) abandon(it *item) error {
	if err := r.rebuild.Write(); err != nil {
		return err
	}
	v, err := r.s.index.Get(orgKey(kindIntent, it.org).text(it.intent))
	if err == nil {
		if _, _, imported, err := parseIntent(v, r.s.tip.ID); err != nil || !imported {
			return err
		}
	} else if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	r.abandoned.abandon(it)
	return nil
}

// finish writes the last keys. Then it writes the meters, the counts and the mark that says that the index is
// whole.
func (r *reindexer) finish() error {
	if err := r.rebuild.Write(); err != nil {
		return err
	}
	b := r.s.newBatch()
	for m, n := range r.months {
		stored, err := r.s.count(meterKey(m.org, m.month))
		if err != nil {
			return err
		}
		b.number(meterKey(m.org, m.month), max(stored, n))
	}
	if err := r.s.recount(b, r.indexed); err != nil {
		return err
	}
	if err := r.s.setMark(b, headStream, r.indexed); err != nil {
		return err
	}
	return r.s.apply(b)
}
