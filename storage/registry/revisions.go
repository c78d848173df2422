package registry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Revised is a document as it stood at one of its revisions.
type Revised[T any] struct {
	Document *T
	Revision int64
	// ReplacedAt is the time at which it was replaced or removed. It is zero for the current document.
	ReplacedAt time.Time
	Removed    bool
}

// retire keeps the current revision of a document that tx is about to replace or remove.
func retire(tx storage.Tx, kind storage.Kind, org, id string, removed bool) error {
	if err := storage.Retire(tx, kind, org, id, removed, time.Now()); err != nil {
		return fmt.Errorf("keeping the revision of a document: %w", err)
	}
	return nil
}

// load calls f with a reader, and returns f's revision. Then it notes that the documents up to loaded,
// the other result of f, may decide. If a change came in between, it begins again.
func (r *Registry) load(
	ctx context.Context, org string, f func(storage.Reader) (revision, loaded int64, err error),
) (int64, error) {
	for {
		noted := false
		var revision, loaded int64
		if _, err := read(ctx, r, func(tx storage.Reader) (_ struct{}, err error) {
			if revision, loaded, err = f(tx); err == nil {
				noted, err = isNoted(tx, org, loaded)
			}
			return struct{}{}, err
		}); err != nil || noted {
			return revision, err
		}
		err := r.update(ctx, org, func(tx storage.Tx) error {
			now, _, err := rulesRevision(tx, org, rulesKinds...)
			if err != nil {
				return err
			}
			if now != revision {
				return errMoved
			}
			if noted, err := isNoted(tx, org, loaded); err != nil || noted {
				return err
			}
			return storage.AllLoaded.Put(tx, org, &storage.Loaded{Through: loaded})
		})
		if !errors.Is(err, errMoved) {
			return revision, err
		}
	}
}

// errMoved ends an update because the rules have changed.
var errMoved = errors.New("the rules have changed")

func isNoted(tx storage.Reader, org string, loaded int64) (bool, error) {
	if loaded == 0 {
		return true, nil
	}
	noted, err := storage.AllLoaded.Get(tx, org, "")
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil && noted.Through >= loaded, err
}

// rulesKinds are the kinds of the documents that decide by rules.
var rulesKinds = []storage.Kind{storage.RuleKind, storage.ListKind, storage.LibraryKind}

// rulesRevision returns the revision of org's rules as far as documents of the given kinds decide it, and the
// greatest revision of such a document.
func rulesRevision(tx storage.Reader, org string, kinds ...storage.Kind) (revision, loaded int64, err error) {
	for _, kind := range kinds {
		err := tx.Scan(storage.Query{Kind: kind, Org: org}, func(_ []byte, d storage.Document) (bool, error) {
			loaded = max(loaded, revisionOf(d))
			return true, nil
		})
		if err != nil {
			return 0, 0, err
		}
	}
	counts, err := tx.Get(storage.CountsKind, org, "")
	if errors.Is(err, storage.ErrNotFound) {
		err = nil
	}
	return max(loaded, revisionOf(counts)), loaded, err
}

func revisionOf(d storage.Document) int64 {
	return int64(min(d.Revision, math.MaxInt64)) //nolint:gosec // limited to MaxInt64
}

// RuleAt returns a rule as it stood at one of its revisions, or storage.ErrNotFound if that revision is
// not kept. A rule that was deleted since is returned, too.
func (r *Registry) RuleAt(ctx context.Context, org, id string, revision int64) (*engine.Rule, error) {
	return at(ctx, r, storage.Rules, org, id, revision)
}

// ListAt is [Registry.RuleAt] for a list.
func (r *Registry) ListAt(ctx context.Context, org, name string, revision int64) (*engine.List, error) {
	return at(ctx, r, storage.Lists, org, name, revision)
}

// LibraryAt is [Registry.RuleAt] for a library.
func (r *Registry) LibraryAt(ctx context.Context, org, name string, revision int64) (*engine.Library, error) {
	return at(ctx, r, storage.Libraries, org, name, revision)
}

func at[T any](ctx context.Context, r *Registry, c storage.Of[T], org, id string, revision int64) (*T, error) {
	return read(ctx, r, func(tx storage.Reader) (*T, error) {
		d, err := tx.Get(c.Kind, org, id)
		if err == nil && revisionOf(d) == revision {
			return c.Parse(d)
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		old, err := storage.Revisions.Get(tx, org, storage.RevisionID(c.Kind, id, revision))
		if err != nil {
			return nil, err
		}
		return c.Parse(old.Document(org))
	})
}

// RuleRevisions returns the revisions of a rule that are kept, newest first. The first one is the
// current rule, unless it was deleted. It returns storage.ErrNotFound if no revision is kept.
func (r *Registry) RuleRevisions(
	ctx context.Context, org, id string, p storage.Page,
) ([]Revised[engine.Rule], string, error) {
	return revisions(ctx, r, storage.Rules, org, id, p)
}

// ListRevisions is [Registry.RuleRevisions] for a list.
func (r *Registry) ListRevisions(
	ctx context.Context, org, name string, p storage.Page,
) ([]Revised[engine.List], string, error) {
	return revisions(ctx, r, storage.Lists, org, name, p)
}

// LibraryRevisions is [Registry.RuleRevisions] for a library.
func (r *Registry) LibraryRevisions(
	ctx context.Context, org, name string, p storage.Page,
) ([]Revised[engine.Library], string, error) {
	return revisions(ctx, r, storage.Libraries, org, name, p)
}

func revisions[T any](
	ctx context.Context, r *Registry, c storage.Of[T], org, id string, p storage.Page,
) (found []Revised[T], next string, err error) {
	prefix := slices.Concat([]byte{byte(c.Kind)}, storage.Text(id))
	after, err := p.Start(byte(storage.RevisionKind))
	if err != nil {
		return nil, "", err
	}
	if after != nil && !bytes.HasPrefix(after, prefix) {
		return nil, "", storage.ErrBadCursor
	}
	found, err = read(ctx, r, func(tx storage.Reader) (found []Revised[T], err error) {
		next = ""
		var last string
		add := func(v Revised[T]) bool {
			if len(found) == p.Limit {
				next = storage.Cursor(byte(storage.RevisionKind), []byte(last))
				return false
			}
			found, last = append(found, v), storage.RevisionID(c.Kind, id, v.Revision)
			return true
		}
		q := storage.Query{Org: org, Prefix: prefix}
		if after != nil {
			q.From = slices.Concat(after, []byte{0})
		} else if d, err := tx.Get(c.Kind, org, id); err == nil {
			doc, err := c.Parse(d)
			if err != nil {
				return nil, err
			}
			add(Revised[T]{Document: doc, Revision: revisionOf(d)})
		} else if !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		err = storage.Revisions.Scan(tx, q, func(_ []byte, v *storage.Revision) (bool, error) {
			doc, err := c.Parse(v.Document(org))
			if err != nil {
				return false, err
			}
			return add(Revised[T]{doc, v.Since, v.ReplacedAt, v.Removed}), nil
		})
		if err == nil && len(found) == 0 && after == nil {
			err = storage.ErrNotFound
		}
		return found, err
	})
	return found, next, err
}

// Then is a revision of an organization's rules. Origin is the [storage.Origin] whose revision it is. It is
// empty for a revision of this store.
type Then struct {
	Origin   string
	Revision int64
}

// OriginOf returns the id of the [storage.Origin] that has a chain, or storage.ErrNotFound.
func (r *Registry) OriginOf(ctx context.Context, org string, chain [16]byte) (string, error) {
	name := hex.EncodeToString(chain[:])
	return read(ctx, r, func(tx storage.Reader) (string, error) {
		id := ""
		err := storage.Origins.Scan(tx, storage.Query{Org: org}, func(_ []byte, o *storage.Origin) (bool, error) {
			if slices.Contains(o.Chains, name) {
				id = o.ID
			}
			return id == "", nil
		})
		if err == nil && id == "" {
			err = storage.ErrNotFound
		}
		return id, err
	})
}

// RulesAt returns the rules and libraries that stood at a revision of the rules, in the orders of
// [Registry.RulesAndLibraries].
func (r *Registry) RulesAt(
	ctx context.Context, org string, at Then,
) (rules []engine.Rule, libraries []engine.Library, err error) {
	rules, err = read(ctx, r, func(tx storage.Reader) ([]engine.Rule, error) {
		rules, err := stood(tx, storage.Rules, org, at, nil)
		if err == nil {
			libraries, err = stood(tx, storage.Libraries, org, at, nil)
		}
		return rules, err
	})
	slices.SortFunc(rules, CompareRules)
	return rules, libraries, err
}

// ListsAt returns the lists with the given names that stood at a revision of the rules.
func (r *Registry) ListsAt(ctx context.Context, org string, names []string, at Then) ([]engine.List, error) {
	return read(ctx, r, func(tx storage.Reader) ([]engine.List, error) {
		return stood(tx, storage.Lists, org, at, names)
	})
}

// stood returns the documents of a collection that stood at a revision, in the order of their ids. If
// names is not nil, it returns those alone.
func stood[T any](tx storage.Reader, c storage.Of[T], org string, at Then, names []string) ([]T, error) {
	found := make(map[string]storage.Document)
	current := func(_ []byte, d storage.Document) (bool, error) {
		if revisionOf(d) <= at.Revision && (names == nil || slices.Contains(names, d.ID)) {
			d.Value = bytes.Clone(d.Value)
			found[d.ID] = d
		}
		return true, nil
	}
	if at.Origin == "" {
		if err := tx.Scan(storage.Query{Kind: c.Kind, Org: org}, current); err != nil {
			return nil, err
		}
	}
	candidates, err := newestUpTo(tx, c.Kind, org, at)
	if err != nil {
		return nil, err
	}
	for id, since := range candidates {
		if _, current := found[id]; current || names != nil && !slices.Contains(names, id) {
			continue
		}
		v, err := storage.Revisions.Get(tx, org, storage.RevisionsFrom(at.Origin)+storage.RevisionID(c.Kind, id, since))
		if err != nil {
			return nil, err
		}
		if v.Stood(at.Revision) {
			found[id] = v.Document(org)
		}
	}
	var all []T
	for _, id := range slices.Sorted(maps.Keys(found)) {
		doc, err := c.Parse(found[id])
		if err != nil {
			return nil, err
		}
		all = append(all, *doc)
	}
	return all, nil
}

// newestUpTo returns the newest kept revision of each document of a kind up to a revision, by the
// documents' ids. Only these can have stood there.
func newestUpTo(tx storage.Reader, kind storage.Kind, org string, at Then) (map[string]int64, error) {
	newest := make(map[string]int64)
	from := storage.RevisionsFrom(at.Origin)
	q := storage.Query{Kind: storage.RevisionKind, Org: org, Prefix: append([]byte(from), byte(kind)), Bare: true}
	err := tx.Scan(q, func(position []byte, _ storage.Document) (bool, error) {
		_, id, since, err := storage.ParseRevisionID(position[len(from):])
		if _, newer := newest[id]; err == nil && !newer && since <= at.Revision {
			newest[id] = since
		}
		return true, err
	})
	return newest, err
}

// revisionSlack is how long a decision can be made and dated after the rules by which it was made were
// replaced. A replica may trust its caches for [storage.MaxAge], and clocks differ.
const revisionSlack = 4 * storage.MaxSkew

// SweepRevisions removes org's revisions under which no row can have been decided that was decided at or
// after a time. It returns the number of removed revisions.
func (r *Registry) SweepRevisions(ctx context.Context, org string, before time.Time) (removed int, err error) {
	end := before.Add(-revisionSlack)
	return r.sweep(ctx, org, storage.RevisionKind, end, func(storage.Tx, int) error { return nil })
}

// EachRevised calls f for each organization that keeps revisions, in the order of the backend. It stops
// at the first error of f and returns it.
func (r *Registry) EachRevised(ctx context.Context, f func(org string) error) error {
	q := storage.Query{Kind: storage.RevisionKind, Every: true, Bare: true}
	for {
		org, found := "", false
		if _, err := read(ctx, r, func(tx storage.Reader) (struct{}, error) {
			return struct{}{}, tx.Scan(q, func(_ []byte, d storage.Document) (bool, error) {
				org, found = d.Org, true
				return false, nil
			})
		}); err != nil || !found {
			return err
		}
		if err := f(org); err != nil {
			return err
		}
		q.Org, q.From = org, []byte{0xff} // no kind is 0xff, so every position of org is before it
	}
}
