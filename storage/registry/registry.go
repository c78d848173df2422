// Package registry keeps an organization's policies, rules, agents, API keys and subscription.
// They are documents in any store that implements storage.Documents. The registry enforces these
// rules. Versions of a policy only grow. Names of agents are unique. Plans limit the numbers of
// documents. If a key is revoked, the keys that were made with it are revoked, too.
//
// A method that takes an organization treats another organization's document as missing. When a
// method returns nil, its write is durable and in force. The history of changes names the
// [storage.Actor] of the write's context. After a call, neither side may modify values that were
// passed in or returned.
//
// # Revisions
//
// A rule, a list or a library has the revision of the commit that wrote it. A row names the revision R of
// the rules under which it was decided. A document stood at R if its revision is at most R and no commit
// up to R has replaced or removed it. This includes the rules that did not match. So each fact has one
// owner: a row names R, a stored [storage.Revision] says from when to when a document stood, and nothing
// else is recorded for a decision.
//
//   - R of a set of rules is the greatest revision of a rule, a list, a library or the counts. Each
//     change of the first three raises it, also a removal, because a removal changes the counts.
//   - Before a set is used to decide, [Registry.RulesAndLibraries] notes in [storage.Loaded] how far the
//     documents were read. This is one write after a change, not one for each decision. It is serialized
//     with the changes: if a change came first, the set is read again.
//   - A change keeps the document that it replaces as a [storage.Revision], in the same commit, if the
//     document was noted. So a revision that nobody has loaded goes at once. No limit applies.
//   - [Registry.SweepRevisions] removes the revisions that were replaced before the oldest row that is
//     kept.
//
// The numbers of revisions have a meaning in one organization of one store only. So an import carries no revisions. The
// documents that stood at a row are not known if another store has decided the row.
package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"writ.example/writ/storage"
)

// Registry keeps documents in a store. Its methods are safe for concurrent use.
type Registry struct {
	docs storage.Documents
}

// New returns the registry of a store.
func New(docs storage.Documents) *Registry { return &Registry{docs} }

// ErrStale means that this process may have missed changes of the store, and cannot read the
// store now.
var ErrStale = errors.New("the store cannot confirm that what is known of it is current")

// Fresh reports whether caches that follow the store's changes are current. If it returns false,
// read the store instead. If the store cannot be read then, the read returns ErrStale.
func (r *Registry) Fresh() bool { return r.docs.FreshFor() <= storage.MaxAge }

// read calls f with a reader of one state of the store, and returns f's result.
func read[T any](ctx context.Context, r *Registry, f func(storage.Reader) (T, error)) (found T, err error) {
	err = r.docs.View(ctx, func(tx storage.Reader) (err error) {
		found, err = f(tx)
		return err
	})
	if err == nil {
		return found, nil
	}
	if !errors.Is(err, storage.ErrNotFound) && !r.Fresh() {
		err = fmt.Errorf("%w: %w", ErrStale, err)
	}
	var none T
	return none, err
}

// get returns the document with an id, or storage.ErrNotFound.
func get[T any](ctx context.Context, r *Registry, c storage.Of[T], org, id string) (*T, error) {
	return read(ctx, r, func(tx storage.Reader) (*T, error) { return c.Get(tx, org, id) })
}

// change runs f in an update, commits the writes of f, and returns f's result.
func change[T any](
	ctx context.Context, r *Registry, org string, f func(storage.Tx) (*T, error),
) (changed *T, err error) {
	err = r.update(ctx, org, func(tx storage.Tx) (err error) {
		changed, err = f(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

func (r *Registry) update(ctx context.Context, org string, f func(storage.Tx) error) error {
	_, err := r.docs.Update(ctx, org, f)
	return err
}

func every[T any](tx storage.Reader, c storage.Of[T], q storage.Query) (docs []*T, err error) {
	err = c.Scan(tx, q, func(_ []byte, doc *T) (bool, error) {
		docs = append(docs, doc)
		return true, nil
	})
	return docs, err
}

// first returns the first document that q selects, or storage.ErrNotFound.
func first[T any](tx storage.Reader, c storage.Of[T], q storage.Query) (doc *T, err error) {
	err = c.Scan(tx, q, func(_ []byte, found *T) (bool, error) {
		doc = found
		return false, nil
	})
	if err == nil && doc == nil {
		err = storage.ErrNotFound
	}
	return doc, err
}

// list returns a page of org's documents in the order of an index. It skips documents for which
// keep returns false.
func list[T any](
	ctx context.Context, r *Registry, c storage.Of[T], org string, index storage.Index, p storage.Page,
	keep func(*T) bool,
) (items []*T, next string, err error) {
	return page(ctx, r, c, byte(c.Kind), storage.Query{Org: org, Index: index}, p, math.MaxInt, keep)
}

// page returns a page of the documents that q selects and keep accepts. A cursor is valid only
// for lists of the same kind with the same prefix of q. The page ends early after keep has
// rejected a given number of documents.
func page[T any](
	ctx context.Context, r *Registry, c storage.Of[T], kind byte, q storage.Query, p storage.Page, past int,
	keep func(*T) bool,
) (items []*T, next string, err error) {
	after, err := p.Start(kind)
	if err != nil {
		return nil, "", err
	}
	if after != nil {
		if !bytes.HasPrefix(after, q.Prefix) {
			return nil, "", storage.ErrBadCursor
		}
		q.From = slices.Concat(after, []byte{0}) // the least key that is greater than the cursor
	}
	items, err = read(ctx, r, func(tx storage.Reader) (items []*T, err error) {
		var last []byte
		refused := 0
		next = ""
		err = c.Scan(tx, q, func(position []byte, doc *T) (bool, error) {
			kept := keep(doc)
			if kept && len(items) == p.Limit || !kept && refused == past {
				next = storage.Cursor(kind, last)
				return false, nil
			}
			if kept {
				items = append(items, doc)
			} else {
				refused++
			}
			last = append(last[:0], position...)
			return true, nil
		})
		return items, err
	})
	return items, next, err
}

func all[T any](*T) bool { return true }
