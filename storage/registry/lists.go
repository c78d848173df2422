package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// MissingListError names a missing list that a rule uses.
type MissingListError struct{ Name string }

// Error implements error.
func (e *MissingListError) Error() string { return "there is no list " + e.Name }

// ListInUseError names rules that use a list.
type ListInUseError struct{ Rules []string }

// Error implements error.
func (e *ListInUseError) Error() string { return "the list is used by " + strings.Join(e.Rules, ", ") }

// PutList stores the values or the document of l as the next version of a list and returns the list. l must
// be valid. If its content equals the stored content, there is no new version. The lists of org are kept in
// memory, so their total engine.List.Size is bounded by 2*[storage.MaxBody]. Beyond that, PutList returns a
// *storage.LimitError. If a list of texts becomes another document, and rules of org use it as texts,
// PutList returns a [*ListInUseError]. looks reports whether a rule does. It is called as in
// [Registry.DeleteList]. It may be nil if l is a list of texts. check may be nil. It gets the stored list,
// or nil if there is no list yet. If check returns an error, nothing is stored and PutList returns this
// error. check may be called more than once and must not call the store.
func (r *Registry) PutList(
	ctx context.Context, org string, l engine.List, at time.Time, looks func(engine.Rule) bool,
	check func(*engine.List) error,
) (list *engine.List, created bool, err error) {
	_, texts := l.Texts()
	list, err = change(ctx, r, org, func(tx storage.Tx) (*engine.List, error) {
		next := engine.List{Name: l.Name, Values: slices.Clone(l.Values), Data: l.Data.Clone(), Version: 1,
			CreatedAt: at, UpdatedAt: at}
		next.Normalize()
		more := next.Size()
		old, err := storage.Lists.Get(tx, org, l.Name)
		if created = errors.Is(err, storage.ErrNotFound); created {
			old, err = nil, nil
		}
		if err == nil && check != nil {
			err = check(old)
		}
		if err != nil {
			return nil, err
		}
		if old != nil {
			if slices.Equal(old.Values, next.Values) && bytes.Equal(old.Data, next.Data) &&
				(old.Data == nil) == (next.Data == nil) {
				return old, nil
			}
			if _, were := old.Texts(); were && !texts {
				if err := unused(tx, org, l.Name, looks); err != nil {
					return nil, err
				}
			}
			next.Version, next.CreatedAt = old.Version+1, old.CreatedAt
			more -= old.Size()
		}
		if err := recount(tx, org, func(c *storage.Counts) error {
			return raise(&c.ListBytes, int64(more), "bytes of lists", storage.MaxListBytes)
		}); err != nil {
			return nil, err
		}
		if err := retire(tx, storage.ListKind, org, l.Name, false); err != nil {
			return nil, err
		}
		return &next, storage.Lists.Put(tx, org, &next)
	})
	return list, created && err == nil, err
}

// List returns the list called name, or storage.ErrNotFound.
func (r *Registry) List(ctx context.Context, org, name string) (*engine.List, error) {
	return get(ctx, r, storage.Lists, org, name)
}

// Lists returns org's lists with the given names. It ignores names without a list. It also returns a
// revision that grows with each change of these lists. If it is greater than the revision of
// [Registry.RulesAndLibraries], the lists may not belong to the rules.
func (r *Registry) Lists(
	ctx context.Context, org string, names []string,
) (lists []engine.List, revision int64, err error) {
	lists, err = read(ctx, r, func(tx storage.Reader) (lists []engine.List, err error) {
		revision = 0
		for _, name := range names {
			l, err := storage.Lists.Get(tx, org, name)
			if errors.Is(err, storage.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			lists, revision = append(lists, *l), max(revision, l.Revision)
		}
		counts, err := tx.Get(storage.CountsKind, org, "") // a removal of a list changes the counts
		if errors.Is(err, storage.ErrNotFound) {
			err = nil
		}
		revision = max(revision, revisionOf(counts))
		return lists, err
	})
	return lists, revision, err
}

// ListLists returns org's lists in the order of their names.
func (r *Registry) ListLists(
	ctx context.Context, org string, p storage.Page,
) (lists []*engine.List, next string, err error) {
	return list(ctx, r, storage.Lists, org, storage.ByID, p, all)
}

// DeleteList removes a list. It returns storage.ErrNotFound for a missing list. If rules of org
// use the list, it returns a [*ListInUseError]. It calls looks for each rule whose condition may
// name the list. looks reports whether the rule uses the list. If check is not nil, it gets the
// stored list, and an error of check keeps the list. looks and check may be called more than once
// and must not call the store.
func (r *Registry) DeleteList(
	ctx context.Context, org, name string, looks func(engine.Rule) bool, check func(*engine.List) error,
) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		old, err := storage.Lists.Get(tx, org, name)
		if err == nil && check != nil {
			err = check(old)
		}
		if err != nil {
			return err
		}
		if err := unused(tx, org, name, looks); err != nil {
			return err
		}
		if err := recount(tx, org, func(c *storage.Counts) error {
			return raise(&c.ListBytes, -int64(old.Size()), "bytes of lists", 0)
		}); err != nil {
			return err
		}
		if err := retire(tx, storage.ListKind, org, name, true); err != nil {
			return err
		}
		return tx.Delete(storage.ListKind, org, name)
	})
}

// unused returns a [*ListInUseError] if a rule may name a list and looks is true of the rule.
func unused(tx storage.Reader, org, name string, looks func(engine.Rule) bool) error {
	var used []string
	err := storage.Rules.Scan(tx, storage.Query{Org: org}, func(_ []byte, rule *engine.Rule) (bool, error) {
		// A condition with a backslash may spell the name with escapes.
		could := strings.Contains(rule.Condition, name) || strings.Contains(rule.Condition, `\`)
		if could && looks(*rule) {
			used = append(used, fmt.Sprintf("%q (%s)", rule.Name, rule.ID))
		}
		return len(used) < usersNamed, nil
	})
	if err == nil && len(used) > 0 {
		err = &ListInUseError{used}
	}
	return err
}

// usersNamed bounds the number of rules that a ListInUseError names.
const usersNamed = 10

// NoTextsError names a list that a rule uses as texts, but that is another document.
type NoTextsError struct{ Name string }

// Error implements error.
func (e *NoTextsError) Error() string { return "the list " + e.Name + " is a document, not texts" }

// haveLists returns a [*MissingListError] if org does not have all of the named lists, and a
// [*NoTextsError] if one of texts is no list of texts.
func haveLists(tx storage.Reader, org string, names, texts []string) error {
	for _, name := range texts {
		l, err := storage.Lists.Get(tx, org, name)
		if errors.Is(err, storage.ErrNotFound) {
			return &MissingListError{name}
		}
		if err != nil {
			return fmt.Errorf("reading a list: %w", err)
		}
		if _, ok := l.Texts(); !ok {
			return &NoTextsError{name}
		}
	}
	for _, name := range names {
		if _, err := tx.Get(storage.ListKind, org, name); errors.Is(err, storage.ErrNotFound) {
			return &MissingListError{name}
		} else if err != nil {
			return err
		}
	}
	return nil
}
