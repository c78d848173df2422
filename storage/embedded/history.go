package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

func recordKey(org string, id uuid.UUID) key { return orgKey(kindRecord, org).id(id) }

// Record implements storage.History.
func (s *Store) Record(_ context.Context, org, decisionID string) (*storage.Record, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	id, ok := storage.ParseID(decisionID)
	if !ok {
		return nil, storage.ErrNotFound
	}
	return s.record(org, id)
}

// ListRecords implements storage.History.
func (s *Store) ListRecords(
	ctx context.Context, org string, f storage.Filter, p storage.Page,
) (_ []*storage.Record, _ string, err error) {
	before, err := startOf(kindRecord, org, p, idLen)
	if err != nil {
		return nil, "", err
	}
	if before != nil && len(before) != idLen {
		return nil, "", storage.ErrBadCursor
	}
	l := recordLister{s: s, org: org, filter: f, limit: p.Limit}
	if f.IntentID != "" {
		err := l.ofIntent(ctx, before)
		return l.records, l.next, err
	}
	lower, upper := l.bounds(before)
	if bytes.Compare(lower, upper) >= 0 {
		return nil, "", nil
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := s.index.ScanBack(ctx, lower, upper, l.row); err != nil {
		return nil, "", err
	}
	return l.records, l.next, nil
}

// recordLister reads one page of the history.
type recordLister struct {
	s      *Store
	org    string
	filter storage.Filter
	limit  int

	// rows looks up the rows to which the index by decision leads. It is created after the iterator
	// over that index. Therefore a row that is missing in rows was removed in between.
	rows *index.Iterator

	settled   []byte // the last settlement, of the row settledOf
	settledOf uuid.UUID

	prefix  key
	records []*storage.Record
	skipped int
	last    uuid.UUID // the id of the last row that was read
	next    string
}

// ofIntent reads a page of the rows of the filter's intent: the one without an approval, and those
// under one.
func (l *recordLister) ofIntent(ctx context.Context, before []byte) error {
	ids, err := l.s.decisionsOf(l.org, l.filter.IntentID)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(b[:], a[:]) })
	ids = slices.Compact(ids) // one that was imported again is there twice
	ids = slices.DeleteFunc(ids, func(id uuid.UUID) bool { return before != nil && bytes.Compare(id[:], before) >= 0 })
	for i, id := range ids {
		if len(l.records) == l.limit {
			l.next = cursor(kindRecord, ids[i-1][:])
			break
		}
		r, err := l.s.record(l.org, id)
		if err == nil && l.filter.Selects(r) {
			l.records = append(l.records, r)
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // it was removed or abandoned
			return err
		}
	}
	return nil
}

// bounds returns the bounds of the page's keys. If the filter has a decision, they are keys of the
// index by decision. Otherwise they are keys of rows.
func (l *recordLister) bounds(before []byte) (lower, upper key) {
	l.prefix = orgKey(kindRecord, l.org)
	if l.filter.Decision != 0 {
		l.prefix = byDecisionKey(l.org, l.filter.Decision)
	}
	lower, upper = l.prefix, l.prefix.end()
	if !l.filter.From.IsZero() {
		lower = key(bytes.Clone(l.prefix)).id(storage.IDAt(l.filter.From.Add(-storage.MaxSkew)))
	}
	if !l.filter.To.IsZero() {
		// The time in an id is in milliseconds, rounded down.
		upper = key(bytes.Clone(l.prefix)).id(storage.IDAt(l.filter.To.Add(storage.MaxSkew + time.Millisecond)))
	}
	if before != nil {
		if b := append(bytes.Clone(l.prefix), before...); bytes.Compare(b, upper) < 0 {
			upper = b
		}
	}
	return lower, upper
}

func (l *recordLister) close() error {
	if l.rows == nil {
		return nil
	}
	return l.rows.Close()
}

// row takes the key and value of a row. It ends the page once the filter has skipped half a page of
// rows. The request keeps its concurrency slot while rows are skipped, which takes less than a
// millisecond.
func (l *recordLister) row(k, v []byte) (stop bool, err error) {
	if l.skipped == storage.MaxPage/2 {
		l.next = cursor(kindRecord, l.last[:])
		return true, nil
	}
	id, settlement, err := parsePosition(k[len(l.prefix):])
	if err != nil {
		return true, err
	}
	if settlement {
		l.settled, l.settledOf = append(l.settled[:0], v...), id
		return false, nil
	}
	r, err := l.parse(id, v)
	if err != nil {
		return true, err
	}
	if r != nil && len(l.records) == l.limit {
		l.next = cursor(kindRecord, l.last[:])
		return true, nil
	}
	l.last = id
	if r != nil {
		l.records = append(l.records, r)
	} else {
		l.skipped++
	}
	return false, nil
}

func parsePosition(rest []byte) (id uuid.UUID, settlement bool, err error) {
	if settlement = len(rest) == idLen+1 && rest[idLen] == settlementMark; settlement {
		rest = rest[:idLen]
	}
	if id, err = uuid.FromBytes(rest); err != nil {
		err = fmt.Errorf("%w: its key: %w", errCorrupt, err)
	}
	return id, settlement, err
}

// parse returns the record for a row, or for a key of the index by decision. It returns nil if the
// filter does not select the record.
func (l *recordLister) parse(id uuid.UUID, v []byte) (*storage.Record, error) {
	if l.filter.Decision == 0 {
		var settlement []byte
		if l.settledOf == id {
			settlement = l.settled
		}
		return l.s.readRow(l.org, id, v, settlement, &l.filter)
	}
	if l.rows == nil {
		rows, err := l.s.index.Iter()
		if err != nil {
			return nil, err
		}
		l.rows = rows
	}
	r, err := l.s.recordAt(l.rows, l.org, id, &l.filter)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, l.gone(id)
	}
	return r, err
}

// gone is called if an index entry leads to no row. It returns nil if the row was removed after the
// entry was read. Otherwise the row is missing, and gone returns an error.
func (l *recordLister) gone(id uuid.UUID) error {
	_, err := l.s.index.Get(byDecisionKey(l.org, l.filter.Decision).id(id))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: decision %s is missing", errCorrupt, id)
}
