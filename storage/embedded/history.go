package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ/storage"
)

// maxSkipped bounds how many rows a page reads that its filter does not select:
// less than a millisecond, in which the caller can do nothing for others.
const maxSkipped = 256

func recordKey(org string, id uuid.UUID) key { return orgKey(kindRecord, org).id(id) }

// Record implements storage.History.
func (s *Store) Record(_ context.Context, org, decisionID string) (*storage.Record, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	id, ok := parseID(decisionID)
	if !ok {
		return nil, storage.ErrNotFound
	}
	return s.record(org, id)
}

func (s *Store) record(org string, id uuid.UUID) (*storage.Record, error) {
	v, err := s.get(recordKey(org, id))
	if err != nil {
		return nil, err
	}
	return parseRecord(org, id, v, nil)
}

// Settle implements storage.History.
func (s *Store) Settle(
	ctx context.Context, org, decisionID string, settlement storage.Settlement,
) (r *storage.Record, err error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err = s.write(ctx, org, func(b *batch) (c storage.Change, err error) {
		r, err = s.Record(ctx, org, decisionID)
		switch {
		case err != nil:
			return c, err
		case r.Settlement == nil:
			r.Settle(settlement)
			id, _ := parseID(decisionID) // Record has found it
			b.set(recordKey(org, id), appendRecord(nil, r))
		case !storage.SameSettlement(*r.Settlement, settlement):
			return c, storage.ErrConflict
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
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
	lower, upper := l.bounds(before)
	if bytes.Compare(lower, upper) >= 0 {
		return nil, "", nil
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := s.scanBack(ctx, lower, upper, l.row); err != nil {
		return nil, "", err
	}
	return l.records, l.next, nil
}

// recordLister makes one page of history.
type recordLister struct {
	s      *Store
	org    string
	filter storage.Filter
	limit  int

	// rows looks up what the index names. It is made after the index is begun: what
	// it does not find has been removed since, not added.
	rows *pebble.Iterator

	prefix  key
	records []*storage.Record
	skipped int
	last    uuid.UUID // of the rows that were read
	next    string
}

// bounds returns the keys among which the page's rows are: those of the index
// if the filter has a decision, else those of the rows themselves.
func (l *recordLister) bounds(before []byte) (lower, upper key) {
	l.prefix = orgKey(kindRecord, l.org)
	if l.filter.Decision != 0 {
		l.prefix = byDecisionKey(l.org, l.filter.Decision)
	}
	lower, upper = l.prefix, l.prefix.end()
	if !l.filter.From.IsZero() {
		lower = key(bytes.Clone(l.prefix)).id(idAt(l.filter.From.Add(-storage.MaxSkew)))
	}
	if !l.filter.To.IsZero() {
		// An id knows milliseconds only, rounded down.
		upper = key(bytes.Clone(l.prefix)).id(idAt(l.filter.To.Add(storage.MaxSkew + time.Millisecond)))
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

func (l *recordLister) row(k, v []byte) (stop bool, err error) {
	if l.skipped == maxSkipped {
		l.next = cursor(kindRecord, l.last[:])
		return true, nil
	}
	id, err := uuid.FromBytes(k[len(l.prefix):])
	if err != nil {
		return true, fmt.Errorf("%w: its key: %w", errCorrupt, err)
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

// parse returns the record of a row of the index or of the history, or nil if
// the filter does not select it.
func (l *recordLister) parse(id uuid.UUID, v []byte) (*storage.Record, error) {
	if l.filter.Decision == 0 {
		return parseRecord(l.org, id, v, &l.filter)
	}
	if l.rows == nil {
		rows, err := l.s.newIter(nil)
		if err != nil {
			return nil, err
		}
		l.rows = rows
	}
	v, err := l.s.seek(l.rows, recordKey(l.org, id))
	if errors.Is(err, storage.ErrNotFound) {
		// Removed since the index was read, or else corrupt.
		_, err := l.s.missing(intent{org: l.org}, id)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return parseRecord(l.org, id, v, &l.filter)
}
