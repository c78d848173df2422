package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ/ledger/receipt"
	"writ/storage"
)

// Entries calls f for each entry that is not beside a row, and compares the entries with
// their places and keys.
func (r *Reader) Entries(ctx context.Context, f func(*storage.Entry) error) (err error) {
	defer readPanic(&err)
	prefix, entries, keys := key{byte(kindEntry)}, 0, 0
	err = r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		org, rest, err := position(k)
		if err != nil {
			return true, err
		}
		entries++
		e, err := r.entry(string(org), rest, v)
		if err == nil {
			err = f(e)
		}
		return false, err
	})
	if err != nil {
		return err
	}
	prefix = key{byte(kindEntryKey)}
	err = r.s.scan(ctx, prefix, prefix.end(), func(_, _ []byte) (bool, error) { keys++; return false, nil })
	if err == nil && keys != entries {
		return &storage.BreakError{Err: fmt.Errorf("%d entries have %d keys", entries, keys)}
	}
	return err
}

// entry reads an entry, whose key ends in rest.
func (r *Reader) entry(org string, rest, v []byte) (*storage.Entry, error) {
	for kind, b := range kindBytes {
		if len(rest) != 1+placeLen || rest[0] != b {
			continue
		}
		e, err := r.s.entryOf(org, kind, v)
		if err != nil {
			return nil, &storage.BreakError{OrganizationID: org, Err: err}
		}
		at, err := r.s.get(entryKey(e))
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		leaf, err := e.Leaf(receipt.EntryLeaf(e.Body))
		if err != nil {
			return nil, &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("%s %q: %w", kind, e.Key, err)}
		}
		if want := (key{}).place(place{leaf.Seq, leaf.Index}); !bytes.Equal(rest[1:], want) || !bytes.Equal(at, want) {
			return nil, &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("%s %q is not in its place", kind, e.Key)}
		}
		return e, nil
	}
	return nil, &storage.BreakError{OrganizationID: org, Err: errors.New("the key of an entry is none")}
}

// Tombstones calls f for each tombstone, counts the removed rows without one, and adds up
// the decisions of the other intents for Census.
func (r *Reader) Tombstones(ctx context.Context, f func(*storage.Tombstone) error) (err error) {
	defer readPanic(&err)
	var (
		org    string
		rows   *orgRows
		newest uuid.UUID
	)
	prefix := key{byte(kindIntent)}
	err = r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		of, name, err := position(k)
		if err != nil {
			return true, err
		}
		if rows == nil || string(of) != org {
			org = string(of)
			if rows, err = r.org(org); err != nil {
				return true, err
			}
		}
		id, left, imported, err := parseIntent(v, r.chain)
		if err != nil {
			return true, &storage.BreakError{OrganizationID: org, Err: fmt.Errorf("intent %q leads to %d bytes, which are no decision id: %w", name, len(v), err)}
		}
		switch {
		case len(left) > 0:
			intentID, approvalID := storage.CutIntentKey(string(name))
			if left[0].Chain == r.chain && approvalID == "" {
				r.months.remove(org, id)
			}
			return false, f(&storage.Tombstone{
				OrganizationID: org, IntentID: intentID, ApprovalID: approvalID, DecisionID: id.String(), Leaves: left, Imported: imported,
			})
		case bytes.Compare(id[:], rows.removed) > 0:
			rows.led.add(r.seed, string(name), id[:])
			return false, nil
		}
		r.months.remove(org, id)
		if r.older.Unmarked++; bytes.Compare(id[:], newest[:]) > 0 {
			newest = id
		}
		return false, nil
	})
	if r.older.Unmarked > 0 {
		r.older.NewestUnmarked = newest.String()
	}
	return err
}
