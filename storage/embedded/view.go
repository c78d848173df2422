package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// rowView reads the rows of one state of a store.
type rowView struct {
	store *Store
	chain [16]byte // of the store
	state pebble.Reader
	upTo  uint64 // the last frame of the state
}

// now returns the view of the present state.
func (s *Store) now() rowView { return rowView{store: s, state: s.state, upTo: math.MaxUint64} }

// row is a row that was neither removed nor abandoned.
type row struct {
	in      *frame // nil if skipped is set
	it      item
	at      location
	settled location // of its settlement; its frame is 0 if there is none
	// skipped says that the filter of the query does not select the row. Whether it was abandoned or settled is
	// not known then.
	skipped bool
}

// query says which rows of an organization are read: those with ids from from to to, and with the decision
// unless it is 0.
type query struct {
	org      string
	decision engine.Decision
	from, to uuid.UUID
	back     bool // from the greatest id to the least
	filter   *storage.Filter
}

// of returns the query for all rows of an organization.
func of(org string) query { return query{org: org, to: uuid.Max} }

// after returns the id that follows id, and whether there is one.
func after(id uuid.UUID) (uuid.UUID, bool) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			return id, true
		}
	}
	return id, false
}

// before returns the id before id, and whether there is one.
func before(id uuid.UUID) (uuid.UUID, bool) {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]--; id[i] != 0xff {
			return id, true
		}
	}
	return id, false
}

// rows calls f for the rows of a query in the order of their ids, until f returns stop.
func (v rowView) rows(ctx context.Context, q query, f func(r *row) (stop bool, err error)) error {
	gone, err := v.removals(q.org)
	if err != nil || bytes.Compare(q.from[:], q.to[:]) > 0 {
		return err
	}
	lists, first, last := v.store.tables.Lists(q.org), placeOf(q.from), placeOf(q.to)
	list := v.store.tables.Cursor(lists.List(index.Rows, byte(q.decision)), q.back, first, last)
	var settled *index.Cursor
	for _, r := range gone {
		list.Skip(placeOf(r.id), r.last)
	}
	if q.back {
		first = last
	}
	list.Seek(first)
	var group, ends []index.Entry
	var rows []row
	read := frameReader{s: v.store}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if group, err = list.Group(group[:0]); len(group) == 0 || err != nil {
			return err
		}
		if rows, err = v.alike(&read, &q, gone, group, rows[:0]); err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if slices.ContainsFunc(rows, func(r row) bool { return !r.skipped }) {
			if settled == nil {
				settled = v.store.tables.Cursor(lists.List(index.Settled, 0), q.back, placeOf(q.from), placeOf(q.to))
			}
			if ends, err = settled.Find(group[0].At, ends[:0]); err != nil {
				return err
			}
			if rows, err = v.settle(rows, gone, ends); err != nil {
				return err
			}
		}
		for i := range rows {
			if stop, err := f(&rows[i]); stop || err != nil {
				return err
			}
		}
	}
}

// alike appends to rows those of a query whose ids begin alike, in the order of the ids. group has their entries.
func (v rowView) alike(
	read *frameReader, q *query, gone removals, group []index.Entry, rows []row,
) (_ []row, err error) {
	for _, e := range group {
		if e.Frame > v.upTo || gone.before(e) {
			continue
		}
		r := row{at: location{e.Frame, e.Item}}
		if r.in, r.it, err = read.at(r.at); err != nil {
			return nil, err
		}
		id := r.it.id[:]
		if r.it.kind == recordItem && r.it.org == q.org && bytes.Compare(id, q.from[:]) >= 0 &&
			bytes.Compare(id, q.to[:]) <= 0 && !gone.has(r.it.id, e.Frame) {
			if r.skipped, err = skips(r.it.body, q.filter); err != nil {
				return nil, err
			}
			if r.skipped {
				r.in = nil
			} else {
				read.keep()
			}
			rows = append(rows, r)
		}
	}
	if len(rows) > 1 {
		slices.SortStableFunc(rows, func(a, b row) int {
			order := bytes.Compare(a.it.id[:], b.it.id[:])
			if q.back {
				return -order
			}
			return order
		})
	}
	return rows, nil
}

// settle finds the settlements of rows, and leaves out the rows that were abandoned. ends has the entries of
// what became of rows with such ids.
func (v rowView) settle(rows []row, gone removals, ends []index.Entry) ([]row, error) {
	for _, e := range ends {
		if e.Frame > v.upTo || gone.before(e) {
			continue
		}
		at := location{e.Frame, e.Item}
		_, it, err := v.store.at(at)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r row) bool {
			return it.kind == abandonedItem && it.org == r.it.org && it.id == r.it.id && e.Frame > r.at.frame
		})
		for i := range rows {
			r := &rows[i]
			if it.kind == settlementItem && it.org == r.it.org && it.id == r.it.id && e.Frame >= r.at.frame {
				r.settled = at
			}
		}
	}
	return rows, nil
}

// find returns the row of a decision, or storage.ErrNotFound.
func (v rowView) find(org string, id uuid.UUID) (found row, err error) {
	err = v.rows(context.Background(), query{org: org, from: id, to: id}, func(r *row) (bool, error) {
		found = *r
		return true, nil
	})
	if err == nil && found.in == nil {
		err = storage.ErrNotFound
	}
	return found, err
}

// removal says that the rows of an organization with ids up to id, in the frames up to last, were removed.
// Retention removes the rows in the order of their ids, so an organization has few removals: more than one only
// if rows are imported that are older than those that were removed.
type removal struct {
	id   uuid.UUID
	last uint64
}

// removals are the removals of an organization, which a key of kindRemoved has:
//
//	'r' org = *(id(16) frame(8))
type removals []removal

func (g removals) append(v []byte) []byte {
	for _, r := range g {
		v = binary.BigEndian.AppendUint64(append(v, r.id[:]...), r.last)
	}
	return v
}

func parseRemovals(v []byte) (g removals, err error) {
	c := decoding(v)
	for len(c.rest) > 0 && c.err == nil {
		var r removal
		var last [8]byte
		c.bytes(r.id[:])
		c.bytes(last[:])
		r.last = binary.BigEndian.Uint64(last[:])
		g = append(g, r)
	}
	return g, c.err
}

// add adds a removal, and drops those that it includes.
func (g removals) add(r removal) removals {
	g = slices.DeleteFunc(g, func(old removal) bool { return r.includes(old.id, old.last) })
	return append(g, r)
}

func (r *removal) includes(id uuid.UUID, frame uint64) bool {
	return bytes.Compare(id[:], r.id[:]) <= 0 && frame <= r.last
}

// has reports whether the row of a decision was removed, or its settlement, if it is in the given frame.
func (g removals) has(id uuid.UUID, frame uint64) bool {
	return slices.ContainsFunc(g, func(r removal) bool { return r.includes(id, frame) })
}

// before reports whether the item of an entry was certainly removed. It does not read the item.
func (g removals) before(e index.Entry) bool {
	return slices.ContainsFunc(g, func(r removal) bool { return e.At < placeOf(r.id) && e.Frame <= r.last })
}

// removals returns the removals of an organization.
func (v rowView) removals(org string) (removals, error) {
	b, err := v.store.getIn(v.state, orgKey(kindRemoved, org))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseRemovals(b)
}
