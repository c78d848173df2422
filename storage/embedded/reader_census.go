package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"writ/engine"
	"writ/storage"
)

// Census compares the rows that all parts have read with the rest of the store: intents and
// index entries that lead nowhere, the meters, the documents, and the tip. Its error is a
// *storage.BreakError or a failure to read.
func (r *Reader) Census(ctx context.Context) (c storage.Census, err error) {
	defer readPanic(&err)
	c = r.older
	for _, rows := range r.orgs {
		if rows.kept.n+rows.rest > 0 {
			c.Organizations++
		}
		c.Unmarked -= rows.rest
	}
	if err := r.strays(ctx); err != nil {
		return c, err
	}
	for _, org := range slices.Sorted(maps.Keys(r.orgs)) {
		rows := r.orgs[org]
		if rows.led != rows.kept {
			return c, r.misled(ctx, org, rows)
		}
		for month, n := range rows.months {
			r.months.add(org, month, n, 0)
		}
	}
	if err := r.meters(ctx, r.months); err != nil {
		return c, err
	}
	if err := r.documents(ctx); err != nil {
		return c, err
	}
	if err := r.found.compare(r.s, r.noted); err != nil {
		return c, err
	}
	switch {
	case r.found.tip.Head < r.noted.Head:
		r.found.because("it ends at head %d, and %s notes head %d", r.found.tip.Head, tipName(r.s.health.dir), r.noted.Head)
	case r.found.tip.Change < r.noted.Change:
		r.found.because("its documents end at change %d, and %s notes change %d", r.found.tip.Change, tipName(r.s.health.dir), r.noted.Change)
	}
	if r.found.stale != "" {
		r.found.because("%s", r.found.stale)
	}
	if len(r.found.reasons) > 0 {
		return c, &storage.BreakError{Err: fmt.Errorf("the store: %s", strings.Join(r.found.reasons, "; "))}
	}
	return c, nil
}

// strays finds index entries that no part has read: those of an organization without rows
// or of no decision.
func (r *Reader) strays(ctx context.Context) error {
	prefix := key{byte(kindByDecision)}
	return r.s.scan(ctx, prefix, prefix.end(), func(k, _ []byte) (bool, error) {
		org, rest, err := position(k)
		if err != nil {
			return true, err
		}
		if rows := r.orgs[string(org)]; rows != nil && rows.kept.n+rows.rest > 0 &&
			len(rest) == 1+idLen && rest[0] >= byte(engine.Allow) && rest[0] <= byte(engine.Deny) {
			return false, nil
		}
		id, _ := uuid.FromBytes(rest[min(1, len(rest)):]) // zeros if it is no id
		return true, broken(string(org), id, "it is found by its decision, and no such row is there")
	})
}

// misled returns the first row of org that its intent does not lead to, or the first intent
// that does not lead to its row.
func (r *Reader) misled(ctx context.Context, org string, rows *orgRows) error {
	prefix := orgKey(kindRecord, org)
	err := r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		id, settlement, err := parsePosition(k[len(prefix):])
		if settlement || err != nil {
			return err != nil, err
		}
		row, err := r.s.parseRow(org, id, v, nil)
		if err != nil {
			return true, err
		}
		return false, r.leads(row, id)
	})
	if err != nil {
		return err
	}
	prefix = orgKey(kindIntent, org)
	err = r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		name := k[len(prefix):]
		id, left, _, err := parseIntent(v, r.chain)
		if err != nil {
			return true, err
		}
		if len(left) > 0 || bytes.Compare(id[:], rows.removed) <= 0 {
			return false, nil
		}
		row, err := r.s.record(org, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return true, broken(org, id, "its intent %q is decided, and its row is not there", name)
		case err != nil:
			return true, err
		case row.IntentKey() != string(name):
			return true, broken(org, id, "intent %q leads to it, and it is of intent %q", name, row.IntentID)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return &storage.BreakError{OrganizationID: org, Err: errors.New("its intents are not those of its rows")}
}

// leads returns nil if the intent of row, whose decision is id, leads to it.
func (r *Reader) leads(row *storage.Record, id uuid.UUID) error {
	switch v, err := r.s.get(orgKey(kindIntent, row.OrganizationID).text(row.IntentKey())); {
	case errors.Is(err, storage.ErrNotFound):
		return broken(row.OrganizationID, id, "its intent %q is not among the intents that are decided", row.IntentID)
	case err != nil:
		return err
	case !bytes.Equal(v, id[:]):
		return broken(row.OrganizationID, id, "its intent %q leads to another decision", row.IntentID)
	}
	return nil
}
