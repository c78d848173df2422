package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
)

// ReadOnly is a store that was opened only for reading. It changes nothing in or beside the
// directory. After a crash it reads Pebble's log into memory. While the ReadOnly is open, nobody
// can open the store.
type ReadOnly struct {
	reads
	rowView
	s     *Store
	lock  *pebble.Lock
	found inspection
	noted tip
}

// reads are methods of a Store.
type reads interface {
	storage.History
	Chains(ctx context.Context, f func(receipt.Chain) error) error
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
	Changes(ctx context.Context, after storage.Change, most int) ([]storage.Change, error)
	View(ctx context.Context, f func(storage.Reader) error) error
	Organizations(ctx context.Context, f func(org string) error) error
	CountExpired(ctx context.Context, org string, before time.Time, most int) (storage.Expired, error)
}

// OpenReadOnly opens the store in dir for reading. The store must not be open. If this process has
// it open, OpenReadOnly may not notice that, and would release the lock of the open store.
// OpenReadOnly uses only the FS of o. Its error is a *storage.BreakError if files in dir are
// missing or changed since the store was closed. Any other error says why dir cannot be read.
func OpenReadOnly(dir string, o Options) (_ *ReadOnly, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	filesystem := readOnlyFS{o.FS}
	if err := checkShutdownManifest(dir, filesystem); errors.Is(err, errDamaged) {
		return nil, &storage.BreakError{Err: fmt.Errorf("%s: %w", dir, err)}
	} else if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	lock, err := lockDir(dir, filesystem)
	if err != nil {
		return nil, err
	}
	r := &ReadOnly{lock: lock}
	if err := r.open(dir, filesystem); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, errors.Join(err, r.Close()))
	}
	return r, nil
}

func (r *ReadOnly) open(dir string, filesystem vfs.FS) (err error) {
	defer readPanic(&err)
	if r.s, err = openReadOnly(dir, filesystem, r.lock); err != nil {
		return err
	}
	r.reads = r.s
	if err = r.s.loadIntents(); errors.Is(err, segment.ErrDamaged) {
		return &storage.BreakError{Err: err}
	} else if err != nil {
		return err
	}
	switch head, err := r.s.lastHead(); {
	case err == nil:
		r.s.tip = receipt.Chain{ID: head.Chain}.Next(head.Head)
	case errors.Is(err, storage.ErrCorrupt):
		return &storage.BreakError{Err: err}
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	r.rowView = rowView{store: r.s, chain: r.s.tip.ID, scan: r.s.index.Scan}
	if r.noted, err = readTip(dir, filesystem); errors.Is(err, errNoTip) || errors.Is(err, errDamagedTip) {
		r.found.addReason("%s, which notes how far the store has come, %v", tipName(dir), err)
		return nil
	}
	return err
}

// Close releases the directory.
func (r *ReadOnly) Close() error {
	var err error
	if r.s != nil {
		err = errors.Join(r.s.health.Stopped(), r.s.closeFiles())
	}
	return errors.Join(err, r.lock.Close())
}

func broken(org string, id uuid.UUID, format string, args ...any) error {
	return &storage.BreakError{OrganizationID: org, DecisionID: id.String(), Err: fmt.Errorf(format, args...)}
}

// rowView reads the rows of one state of a store.
type rowView struct {
	store *Store
	chain [16]byte // of the store
	scan  func(ctx context.Context, lower, upper []byte, f index.Visit) error
}

// EachRow calls f in the order of ids for each row of org whose id is greater than after and not
// greater than upTo. An empty after or upTo is no bound.
func (r rowView) EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) (err error) {
	defer readPanic(&err)
	if err := checkOrg(org); err != nil {
		return err
	}
	prefix := orgKey(kindRecord, org)
	bounds := []key{prefix, prefix.end()}
	for i, at := range []string{after, upTo} {
		if at == "" {
			continue
		}
		id, ok := storage.ParseID(at)
		if !ok {
			return fmt.Errorf("rows from %.64q, which is no id", at)
		}
		bounds[i] = recordKey(org, id).end() // the key after the row and its settlement
	}
	from, to := bounds[0], bounds[1]
	return r.store.eachRow(ctx, r.scan, org, from, to, func(id uuid.UUID, v, settlement []byte) (bool, error) {
		if v == nil {
			return true, broken(org, id, "a settlement is there, and no such row")
		}
		row, err := r.store.readRow(org, id, v, settlement, nil)
		if err != nil {
			return true, broken(org, id, "%w", err)
		}
		return false, f(row)
	})
}

// EachTombstone calls f for the tombstone of each removed row of org. An empty org stands for
// every organization.
func (r rowView) EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) (err error) {
	defer readPanic(&err)
	if err := checkOrg(org); err != nil {
		return err
	}
	prefix := key{byte(kindIntent)}
	if org != "" {
		prefix = orgKey(kindIntent, org)
	}
	return r.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		of, intent, err := position(k)
		if err != nil {
			return true, err
		}
		id, left, imported, err := parseIntent(v, r.chain)
		if err != nil {
			return true, &storage.BreakError{OrganizationID: string(
				of,
			), Err: fmt.Errorf("intent %q leads to %d bytes, which are no decision id: %w", intent, len(v), err)}
		}
		intentID, approvalID := storage.CutIntentKey(string(intent))
		return false, f(&storage.Tombstone{
			OrganizationID: string(of), IntentID: intentID, ApprovalID: approvalID, DecisionID: id.String(),
			Leaves: left, Imported: imported,
		})
	})
}

// EachEntry calls f for each entry that is not a settlement. It checks the place and the key of
// each entry.
func (r *ReadOnly) EachEntry(ctx context.Context, f func(*storage.Entry) error) (err error) {
	defer readPanic(&err)
	entries, keys := 0, 0
	err = r.s.scanKind(ctx, kindEntry, func(org string, rest, v []byte) error {
		entries++
		e, err := r.entry(org, rest, v)
		if err != nil {
			return &storage.BreakError{OrganizationID: org, Err: err}
		}
		return f(e)
	})
	if err != nil {
		return err
	}
	err = r.s.scanKind(ctx, kindEntryKey, func(string, []byte, []byte) error { keys++; return nil })
	if err == nil && keys != entries {
		return &storage.BreakError{Err: fmt.Errorf("%d entries have %d keys", entries, keys)}
	}
	return err
}

// entry reads an entry of org. rest is the end of the key of its row, and v is the value.
func (r *ReadOnly) entry(org string, rest, v []byte) (*storage.Entry, error) {
	if len(rest) != 1+placeLen || entryKindOf(rest[0]) == "" {
		return nil, errors.New("the key of an entry is none")
	}
	e, err := r.s.readEntry(org, entryKindOf(rest[0]), v)
	if err != nil {
		return nil, err
	}
	at, err := r.s.index.Get(entryKey(e))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	leaf, err := e.Leaf(receipt.EntryLeaf(e.Body))
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", e.Kind, e.Key, err)
	}
	if want := (key{}).place(place{leaf.Seq, leaf.Index}); !bytes.Equal(rest[1:], want) || !bytes.Equal(at, want) {
		return nil, fmt.Errorf("%s %q is not in its place", e.Kind, e.Key)
	}
	return e, nil
}
