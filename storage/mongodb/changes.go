package mongodb

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

func newChangeRow(revision uint64, changes []storage.Change) changeRow {
	id := uuid.New()
	row := changeRow{Revision: number(revision), ID: id[:], Changes: make([]change, len(changes))}
	for i, c := range changes {
		row.Changes[i] = change(c)
	}
	return row
}

func (row *changeRow) changes() []storage.Change {
	changes := make([]storage.Change, len(row.Changes))
	for i, c := range row.Changes {
		c.Revision = uint64(row.Revision)
		changes[i] = storage.Change(c)
	}
	return changes
}

// eachChange calls f for the rows of revisions in (after, upTo], in order, until f returns
// false.
func (s *database) eachChange(ctx context.Context, after, upTo uint64, f func(changeRow) bool) error {
	selected := doc("_id", doc("$gt", number(after), "$lte", number(upTo)))
	cursor, err := s.db.Collection(changesName).Find(ctx, selected, options.Find().SetSort(doc("_id", 1)))
	return each(ctx, cursor, err, func(row *changeRow) (bool, error) { return f(*row), nil })
}

// Changes implements storage.Documents.
func (s *database) Changes(ctx context.Context, after storage.Change, most int) (changes []storage.Change, err error) {
	err = s.scan(ctx, "", "reading changes", func(ctx context.Context) error {
		return s.eachChange(ctx, after.Revision, math.MaxUint64, func(row changeRow) bool {
			changes = append(changes, row.changes()...)
			return len(changes) < most
		})
	})
	return changes, err
}

// Trim implements storage.Documents. It also removes the earlier rows without changes.
func (s *Store) Trim(ctx context.Context, changes []storage.Change) error {
	var last int64
	revisions := make([]int64, len(changes))
	for i, c := range changes {
		revisions[i] = number(c.Revision)
		last = max(last, revisions[i])
	}
	return s.do(ctx, "", "trimming changes", func(ctx context.Context) error {
		_, err := s.db.Collection(changesName).DeleteMany(ctx, doc("$or", bson.A{
			anyOf("_id", revisions), doc("_id", doc("$lt", last), "c", bson.A{}),
		}))
		return err
	})
}

type watchers struct {
	// mu is held while the functions are called, and while their changes are read.
	mu sync.Mutex
	storage.Watchers
	// heard is the last revision whose changes the watchers were told.
	heard uint64
	// rows are the last rows that were heard, each at the index of its revision modulo their number.
	rows [1024]heardRow
}

// heardRow is a revision that was heard, with the id of its row. The id is empty if the row was trimmed.
type heardRow struct {
	revision uint64
	id       string
}

// hear tells the watchers the changes of the next revision, and acknowledges the revision. mu is
// held.
func (w *watchers) hear(s *Store, row heardRow, changes []storage.Change) {
	w.tell(s, row, changes)
	s.slot.wake()
}

// tell tells the watchers the changes of the next revision. mu is held.
func (w *watchers) tell(s *Store, row heardRow, changes []storage.Change) {
	for _, c := range changes {
		w.Tell(c)
	}
	w.keep(s, row)
	s.slot.heard.Store(row.revision)
}

// keep notes a row as the last that was heard. mu is held.
func (w *watchers) keep(s *Store, row heardRow) {
	w.heard = row.revision
	w.rows[row.revision%uint64(len(w.rows))] = row
	s.slot.last.Store(&row)
}

// missed tells the watchers that changes up to a revision may be missing. mu is held.
func (w *watchers) missed(s *Store, row heardRow) {
	w.hear(s, row, []storage.Change{{Kind: storage.EverythingChanged, Revision: row.revision}})
}

// other reports whether a revision was heard with another row than this one. mu is held.
func (w *watchers) other(row *changeRow) bool {
	was := w.rows[uint64(row.Revision)%uint64(len(w.rows))]
	return was.revision == uint64(row.Revision) && was.id != "" && was.id != string(row.ID)
}

// own tells the watchers the changes of this handle's update before the update returns. It tells
// them all earlier changes of other handles first. Nobody has heard of an own revision before, but
// for the stream. If this handle has heard it with another row, the database was restored.
func (w *watchers) own(s *Store, row *changeRow, changes []storage.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	revision := uint64(row.Revision)
	if w.other(row) || revision+uint64(len(w.rows)) <= w.heard {
		_ = s.abandon(restored("an update got revision %d, which was heard of with another row", revision))
		return
	}
	if w.heard+1 < revision {
		ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
		defer cancel()
		if err := w.catchUp(ctx, s); err != nil {
			w.Tell(storage.Change{Kind: storage.EverythingChanged, Revision: revision - 1})
			w.heard = revision - 1
		}
	}
	switch {
	case w.heard+1 == revision:
		w.tell(s, row.heard(), changes)
		time.AfterFunc(acknowledgeOwn, s.slot.wake)
	case w.heard < revision: // catchUp read from a primary that lags behind
		w.missed(s, row.heard())
	}
}

func (row *changeRow) heard() heardRow { return heardRow{uint64(row.Revision), string(row.ID)} }

// catchUp tells the watchers all committed changes that they do not know yet. mu is held.
func (w *watchers) catchUp(ctx context.Context, s *Store) error {
	last, err := s.revision(ctx)
	if err != nil || last <= w.heard {
		return err
	}
	rows, err := s.history(ctx, w.heard, last)
	if err != nil {
		return err
	}
	if rows == nil {
		var row changeRow
		err := s.db.Collection(changesName).FindOne(ctx, doc("_id", number(last))).Decode(&row)
		if err := ifAny(err); err != nil {
			return err
		}
		w.missed(s, heardRow{last, string(row.ID)})
		return nil
	}
	for i := range rows {
		w.hear(s, rows[i].heard(), rows[i].changes())
	}
	return nil
}

// history returns the rows of all revisions in (after, upTo], which must not be empty. It returns
// no rows if one of these rows was trimmed.
func (s *Store) history(ctx context.Context, after, upTo uint64) (rows []changeRow, err error) {
	next := after + 1
	err = s.eachChange(ctx, after, upTo, func(row changeRow) bool {
		if uint64(row.Revision) != next {
			return false
		}
		rows = append(rows, row)
		next++
		return true
	})
	if next != upTo+1 {
		rows = nil
	}
	return rows, err
}

// Watch implements storage.Documents.
func (s *Store) Watch(f func(storage.Change)) (stop func()) { return s.watchers.Add(f) }
