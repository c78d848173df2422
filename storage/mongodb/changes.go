package mongodb

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

func newChangeRow(org string, revision uint64, changes []storage.Change) changeRow {
	id := uuid.New()
	row := changeRow{Key: changeKey{org, number(revision)}, ID: id[:], Changes: make([]change, len(changes))}
	for i, c := range changes {
		row.Changes[i] = change(c)
	}
	return row
}

func (row *changeRow) changes() []storage.Change {
	changes := make([]storage.Change, len(row.Changes))
	for i, c := range row.Changes {
		c.Revision = uint64(row.Key.Revision) //nolint:gosec // it counts
		changes[i] = storage.Change(c)
	}
	return changes
}

// Changes implements storage.Documents. It returns the changes in the order of their keys.
func (s *database) Changes(ctx context.Context, after storage.Change, most int) (changes []storage.Change, err error) {
	err = s.scan(ctx, "", "reading changes", func(ctx context.Context) error {
		selected := doc("_id", doc("$gt", changeKey{after.Org, number(after.Revision)}))
		cursor, err := s.db.Collection(changesName).Find(ctx, selected, options.Find().SetSort(doc("_id", 1)))
		return each(ctx, cursor, err, func(row *changeRow) (bool, error) {
			changes = append(changes, row.changes()...)
			return len(changes) < most, nil
		})
	})
	return changes, err
}

// Trim implements storage.Documents. A row may be committed late under a smaller key than those of other
// organizations. So Trim deletes rows by their keys.
func (s *Store) Trim(ctx context.Context, changes []storage.Change) error {
	if len(changes) == 0 {
		return nil
	}
	keys := make([]changeKey, len(changes))
	for i, c := range changes {
		keys[i] = changeKey{c.Org, number(c.Revision)}
	}
	return s.do(ctx, "", "trimming changes", func(ctx context.Context) error {
		_, err := s.db.Collection(changesName).DeleteMany(ctx, anyOf("_id", keys))
		return err
	})
}

// watchers tell the changes in the order of the change stream. Its events have cluster times.
type watchers struct {
	// mu is held while the functions are called.
	mu sync.Mutex
	storage.Watchers
	// at is the time of the last event that was handled. All changes up to this time were told.
	at bson.Timestamp
	// part is the time of a transaction of which only the first rows were told.
	part bson.Timestamp
	// rows has the ids of the last rows that were heard, by key. keys are their keys, in a circle.
	rows map[changeKey]string
	keys [1024]changeKey
	n    int
	// lost says that the server has no events of the time at any more.
	lost bool

	awaited awaited
	// unheard counts the updates of this handle after which Barrier needs a mark: an update has no row of changes,
	// or its row was not heard. marked is how many of them come before an own row, or a mark, that was heard.
	// compared is how many of them come before a comparison of the database with this handle's knowledge.
	unheard, marked, compared atomic.Uint64
	// own is the time of the last own row, or mark, that was heard.
	own atomic.Pointer[bson.Timestamp]
}

// awaited are the rows of this handle that its stream has not brought yet, by id.
type awaited struct {
	mu   sync.Mutex
	rows map[string]awaitedRow
}

// awaitedRow is a row that was not committed before covers updates were counted in watchers.unheard.
type awaitedRow struct {
	told   chan struct{}
	covers uint64
}

// await returns a channel that is closed once the watchers were told a row. The row must not be written yet.
func (w *watchers) await(id []byte) <-chan struct{} {
	row := awaitedRow{make(chan struct{}), w.unheard.Load()}
	a := &w.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rows == nil {
		a.rows = make(map[string]awaitedRow)
	}
	a.rows[string(id)] = row
	return row.told
}

func (a *awaited) remove(id []byte) (row awaitedRow, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	row, ok = a.rows[string(id)]
	delete(a.rows, string(id))
	return row, ok
}

// heardRow is a row of changes that was heard, and the time of its event. A handle that has heard no row has
// the time at which it was opened.
type heardRow struct {
	at  bson.Timestamp
	key changeKey
	id  string
}

// hear tells the watchers the changes of a row. If no other row of its transaction follows, hear acknowledges its
// time. mu is held.
func (w *watchers) hear(s *Store, at bson.Timestamp, row *changeRow) {
	for _, c := range row.changes() {
		w.Tell(c)
	}
	last := *s.slot.last.Load()
	if row.Left > 0 {
		w.part = at
	} else {
		w.at, last.at = at, at
	}
	if row.Key.Revision > 0 { // it is no mark
		last.key, last.id = row.Key, string(row.ID)
		w.keep(&last)
	}
	s.slot.last.Store(&last)
	own, ok := w.awaited.remove(row.ID)
	if ok {
		w.own.Store(&at)
		w.marked.Store(max(w.marked.Load(), own.covers))
		close(own.told)
	}
	switch {
	case row.Left > 0:
	case ok:
		time.AfterFunc(acknowledgeOwn, s.slot.wake)
	default:
		s.slot.wake()
	}
}

// keep notes a row that was heard. mu is held.
func (w *watchers) keep(row *heardRow) {
	if w.rows == nil {
		w.rows = make(map[changeKey]string, len(w.keys))
	}
	at := w.n % len(w.keys)
	if w.n >= len(w.keys) {
		delete(w.rows, w.keys[at])
	}
	w.rows[row.key], w.keys[at] = row.id, row.key
	w.n++
}

// missed tells the watchers that changes up to a time may be missing. mu is held.
func (w *watchers) missed(s *Store, at bson.Timestamp) {
	w.Tell(storage.Change{Kind: storage.EverythingChanged})
	w.at, w.lost = at, false
	last := *s.slot.last.Load()
	last.at = at
	s.slot.last.Store(&last)
	s.slot.wake()
}

// wait waits until the watchers were told the changes of an own row, which is committed. If the stream does not
// bring it, it tells them that everything may have changed.
func (w *watchers) wait(s *Store, row *changeRow, told <-chan struct{}) {
	patience := time.NewTimer(s.timeout)
	defer patience.Stop()
	select {
	case <-told:
		return
	case <-patience.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.awaited.remove(row.ID); ok {
		w.Tell(storage.Change{Kind: storage.EverythingChanged})
		w.unheard.Add(1)
	}
}

// mark writes a mark and waits until it has come in the stream. Then all that was committed before has come,
// too. All handles write the same row, which is no change.
func (s *Store) mark(ctx context.Context) error {
	w := &s.watchers
	row := newChangeRow("", 0, nil)
	told := w.await(row.ID)
	defer w.awaited.remove(row.ID)
	_, err := s.db.Collection(changesName).ReplaceOne(ctx, doc("_id", row.Key), row, options.Replace().SetUpsert(true))
	if err != nil {
		return err
	}
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch implements storage.Documents.
func (s *Store) Watch(f func(storage.Change)) (stop func()) { return s.watchers.Add(f) }
