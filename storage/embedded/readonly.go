package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
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
	if err := r.s.loadLog(filesystem, false); errors.Is(err, segment.ErrDamaged) {
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
	r.rowView = rowView{store: r.s, chain: r.s.tip.ID, state: r.s.state, upTo: r.s.log.Last()}
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

// EachRow calls f in the order of ids for each row of org whose id is greater than afterID and not
// greater than upTo. An empty afterID or upTo is no bound.
func (r rowView) EachRow(ctx context.Context, org, afterID, upTo string, f func(*storage.Record) error) (err error) {
	defer readPanic(&err)
	if err := checkOrg(org); err != nil {
		return err
	}
	q, some := of(org), true
	if afterID != "" {
		if q.from, some = storage.ParseID(afterID); some {
			q.from, some = after(q.from)
		}
	}
	if upTo != "" && some {
		q.to, some = storage.ParseID(upTo)
	}
	if !some {
		return fmt.Errorf("rows after %.64q up to %.64q, which are no ids", afterID, upTo)
	}
	return r.rows(ctx, q, func(found *row) (bool, error) {
		row, err := r.store.readRow(found, nil)
		if err != nil {
			return true, broken(org, found.it.id, "%w", err)
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
	return r.store.scanIn(ctx, r.state, prefix, prefix.end(), func(k, v []byte) (bool, error) {
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

// EachEntry calls f for each entry that is not a settlement, in the order of the log. It checks that each is found by
// its key.
func (r *ReadOnly) EachEntry(ctx context.Context, f func(*storage.Entry) error) (err error) {
	defer readPanic(&err)
	return r.s.log.Scan(ctx, 1, func(stored segment.Frame) error {
		for i, b := range stored.Items {
			it, err := parseItem(b)
			if err == nil && it.kind != entryItem {
				continue
			}
			var e *storage.Entry
			if err == nil {
				e, err = r.entry(&it, location{stored.Number, uint32(i)}) //nolint:gosec // a frame has fewer
			}
			if err != nil {
				return &storage.BreakError{OrganizationID: it.org, Err: err}
			}
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// entry reads the entry of an item.
func (r *ReadOnly) entry(it *item, at location) (*storage.Entry, error) {
	e, err := r.s.readEntry(it.org, it.entryKind, at)
	if err != nil {
		return nil, err
	}
	found, err := r.s.entry(e)
	if errors.Is(err, storage.ErrNotFound) || err == nil && found.Sig != e.Sig {
		err = fmt.Errorf("%s %q is not found by its key, or is there twice", e.Kind, e.Key)
	}
	return e, err
}
