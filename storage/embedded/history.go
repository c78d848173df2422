package embedded

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

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
	after, err := startOf(kindRecord, org, p, idLen)
	if err != nil {
		return nil, "", err
	}
	if after != nil && len(after) != idLen {
		return nil, "", storage.ErrBadCursor
	}
	l := recordLister{s: s, org: org, filter: f, limit: p.Limit}
	if f.IntentID != "" {
		err := l.ofIntent(ctx, after)
		return l.records, l.next, err
	}
	q := l.query(after)
	if err := s.now().rows(ctx, q, l.row); err != nil {
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

// query returns the rows among which the page's are. The page begins after an id, unless it is nil.
func (l *recordLister) query(after []byte) query {
	q := of(l.org)
	q.decision, q.back, q.filter = l.filter.Decision, true, &l.filter
	if !l.filter.From.IsZero() {
		q.from = storage.IDAt(l.filter.From.Add(-storage.MaxSkew))
	}
	if !l.filter.To.IsZero() {
		// The time in an id is in milliseconds, rounded down.
		q.to, _ = before(storage.IDAt(l.filter.To.Add(storage.MaxSkew + time.Millisecond)))
	}
	if after != nil && bytes.Compare(after, q.to[:]) <= 0 {
		var more bool
		if q.to, more = before(uuid.UUID(after)); !more {
			q.from = uuid.Max // so that there are none
		}
	}
	return q
}

// row takes a row. It ends the page once the filter has skipped half a page of
// rows. The request keeps its concurrency slot while rows are skipped, which takes less than a
// millisecond.
func (l *recordLister) row(r *row) (stop bool, err error) {
	if l.skipped == storage.MaxPage/2 {
		l.next = cursor(kindRecord, l.last[:])
		return true, nil
	}
	var rec *storage.Record
	if !r.skipped {
		if rec, err = l.s.readRow(r, &l.filter); err != nil {
			return true, err
		}
	}
	if rec != nil && len(l.records) == l.limit {
		l.next = cursor(kindRecord, l.last[:])
		return true, nil
	}
	l.last = r.it.id
	if rec != nil {
		l.records = append(l.records, rec)
	} else {
		l.skipped++
	}
	return false, nil
}

// record returns the record of a decision with its settlement.
func (s *Store) record(org string, id uuid.UUID) (*storage.Record, error) {
	r, err := s.now().find(org, id)
	if err != nil {
		return nil, err
	}
	return s.readRow(&r, nil)
}
