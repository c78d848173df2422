package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"writ/engine"
	"writ/storage"
)

// part is the rows of an organization in a range of ids; a nil bound is open. The parts
// of an organization cover all ids, so that an index entry without a row is in one of
// them.
type part struct {
	r        *Reader
	org      string
	from, to []byte
	rows     *orgRows
}

// read is the part's storage.Part.
func (p *part) read(ctx context.Context, f func(*storage.Record) error) (err error) {
	defer readPanic(&err)
	w := walk{part: p, f: f, months: make(map[storage.Month]int64)}
	defer func() { err = errors.Join(err, w.close()) }()
	for d := engine.Allow; d <= engine.Deny; d++ {
		if w.byDecision[d], err = w.iter(byDecisionKey(p.org, d)); err != nil {
			return err
		}
		w.byDecision[d].First()
	}
	prefix := orgKey(kindRecord, p.org)
	lower, upper := p.bounds(prefix)
	if err := p.r.s.scan(ctx, lower, upper, func(k, v []byte) (bool, error) { return false, w.next(k[len(prefix):], v) }); err != nil {
		return err
	}
	if err := w.done(); err != nil {
		return err
	}
	for d := range w.byDecision {
		if err := w.indexed(engine.Decision(d), nil); err != nil {
			return err
		}
	}
	w.keep()
	return nil
}

func (p *part) bounds(prefix key) (lower, upper key) {
	lower, upper = append(bytes.Clone(prefix), p.from...), prefix.end()
	if p.to != nil {
		upper = append(bytes.Clone(prefix), p.to...)
	}
	return lower, upper
}

func broken(org string, id uuid.UUID, format string, args ...any) error {
	return &storage.BreakError{OrganizationID: org, DecisionID: id.String(), Err: fmt.Errorf(format, args...)}
}

// walk reads the rows of a part and its indexes in step.
type walk struct {
	*part
	f func(*storage.Record) error

	byDecision [engine.Deny + 1]*iterator

	last   *storage.Record // whose settlement may follow
	kept   pairs
	rest   int
	months map[storage.Month]int64
}

func (w *walk) iter(prefix key) (*iterator, error) {
	lower, upper := w.bounds(prefix)
	return w.r.s.newIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
}

func (w *walk) close() (err error) {
	for _, it := range w.byDecision {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}

// next takes the next row or settlement.
func (w *walk) next(position, v []byte) error {
	id, settlement, err := parsePosition(position)
	switch {
	case err != nil || !settlement:
		if done := w.done(); done != nil {
			return done
		}
		return w.row(position, v)
	case w.last == nil || w.last.DecisionID != id.String():
		return broken(w.org, id, "a settlement is there, and no such row")
	}
	if err := w.r.s.settleRow(w.last, v); err != nil {
		return broken(w.org, id, "%w", err)
	}
	return nil
}

// done gives the last row to f.
func (w *walk) done() error {
	r := w.last
	if w.last = nil; r == nil {
		return nil
	}
	return w.f(r)
}

// row compares a row with its keys.
func (w *walk) row(position, v []byte) error {
	id, err := uuid.FromBytes(position)
	if err != nil {
		return &storage.BreakError{OrganizationID: w.org, Err: fmt.Errorf("the key of a row ends in %d bytes, which are no decision id", len(position))}
	}
	r, err := w.r.s.parseRow(w.org, id, v, nil)
	if err != nil {
		return broken(w.org, id, "%w", err)
	}
	if r.Decision < engine.Allow || r.Decision > engine.Deny {
		return broken(w.org, id, "its row has no decision")
	}
	if skew := r.DecidedAt.Sub(storage.IDTime(id)).Abs(); id.Version() != 7 || skew > storage.MaxSkew {
		return broken(w.org, id, "its id is not of the time at which it was decided, %s", r.DecidedAt)
	}
	if err := w.indexed(r.Decision, position); err != nil {
		return err
	}
	if bytes.Compare(position, w.rows.removed) <= 0 {
		w.rest++
		if err := w.r.leads(r, id); err != nil {
			return err
		}
	} else {
		w.kept.add(w.r.seed, r.IntentKey(), position)
		if chain, err := r.Receipt.Inclusion().Chain(); r.Metered() && (err != nil || chain == w.r.chain) {
			w.months[storage.MonthOf(r.DecidedAt)]++
		}
	}
	w.last = r
	return nil
}

// indexed moves the index of d past position, which must be the next one. A nil position
// is the end.
func (w *walk) indexed(d engine.Decision, position []byte) error {
	it := w.byDecision[d]
	if it == nil {
		return nil // d is no decision
	}
	if err := it.Error(); err != nil {
		return err
	}
	var at []byte
	if it.Valid() {
		at = it.Key()[len(byDecisionKey(w.org, d)):]
	}
	switch {
	case bytes.Equal(at, position):
		it.Next()
		return nil
	case position == nil || at != nil && bytes.Compare(at, position) < 0:
		id, _ := uuid.FromBytes(at) // zeros if it is no id
		return broken(w.org, id, "it is found as %s, and no such row is there", d)
	}
	id, _ := uuid.FromBytes(position)
	return broken(w.org, id, "it is not found as %s", d)
}

// keep adds the part's counts to the organization's.
func (w *walk) keep() {
	w.rows.mu.Lock()
	defer w.rows.mu.Unlock()
	w.rows.kept.n += w.kept.n
	w.rows.kept.sum += w.kept.sum
	w.rows.rest += w.rest
	for m, n := range w.months {
		w.rows.months[m] += n
	}
}
