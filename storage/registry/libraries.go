package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// LibraryChangedError names a library that is missing, or that has changed since a rule was compiled
// with it.
type LibraryChangedError struct{ Name string }

// Error implements error.
func (e *LibraryChangedError) Error() string { return "the library " + e.Name + " has changed" }

// LibraryCheck decides whether the libraries of an organization may change. It gets the stored
// library, or nil, the libraries as they would be, in the order of their names, and the rules that may
// import one. If it returns an error, nothing changes. It may be called more than once and must not
// call the store. All other writes wait for it, so it must not compile.
type LibraryCheck func(old *engine.Library, next []engine.Library, rules []engine.Rule) error

// PutLibrary stores modules as the next version of a library and returns the library. The modules
// must be valid. If they equal the stored modules, there is no new version. The libraries of org are
// kept in memory, so their total engine.Library.Size is bounded by [storage.MaxLibraryBytes]. Beyond
// that, PutLibrary returns a *storage.LimitError.
func (r *Registry) PutLibrary(
	ctx context.Context, org, name string, modules map[string]string, at time.Time, check LibraryCheck,
) (library *engine.Library, created bool, err error) {
	library, err = change(ctx, r, org, func(tx storage.Tx) (*engine.Library, error) {
		next := engine.Library{Name: name, Modules: maps.Clone(modules), Version: 1, CreatedAt: at, UpdatedAt: at}
		more := next.Size()
		old, err := storage.Libraries.Get(tx, org, name)
		if created = errors.Is(err, storage.ErrNotFound); created {
			old, err = nil, nil
		}
		if err != nil {
			return nil, err
		}
		if old != nil {
			next.Version, next.CreatedAt = old.Version+1, old.CreatedAt
			more -= old.Size()
		}
		if err := checkLibraries(tx, org, old, &next, check); err != nil {
			return nil, err
		}
		if old != nil && maps.Equal(old.Modules, next.Modules) {
			return old, nil
		}
		if err := recount(tx, org, func(c *storage.Counts) error {
			return raise(&c.LibraryBytes, int64(more), "bytes of libraries", storage.MaxLibraryBytes)
		}); err != nil {
			return nil, err
		}
		if err := retire(tx, storage.LibraryKind, org, name, false); err != nil {
			return nil, err
		}
		return &next, storage.Libraries.Put(tx, org, &next)
	})
	return library, created && err == nil, err
}

// DeleteLibrary removes a library, or returns storage.ErrNotFound.
func (r *Registry) DeleteLibrary(ctx context.Context, org, name string, check LibraryCheck) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		old, err := storage.Libraries.Get(tx, org, name)
		if err != nil {
			return err
		}
		if err := checkLibraries(tx, org, old, nil, check); err != nil {
			return err
		}
		if err := recount(tx, org, func(c *storage.Counts) error {
			return raise(&c.LibraryBytes, -int64(old.Size()), "bytes of libraries", 0)
		}); err != nil {
			return err
		}
		if err := retire(tx, storage.LibraryKind, org, name, true); err != nil {
			return err
		}
		return tx.Delete(storage.LibraryKind, org, name)
	})
}

// checkLibraries calls check for the libraries in which next stands in the place of old. next is nil
// if old goes.
func checkLibraries(tx storage.Reader, org string, old, next *engine.Library, check LibraryCheck) error {
	all, err := every(tx, storage.Libraries, storage.Query{Org: org})
	if err != nil {
		return err
	}
	var libraries []engine.Library
	for _, l := range all {
		if old == nil || l.Name != old.Name {
			libraries = append(libraries, *l)
		}
	}
	if next != nil {
		libraries = append(libraries, *next)
	}
	slices.SortFunc(libraries, func(a, b engine.Library) int { return strings.Compare(a.Name, b.Name) })
	var rules []engine.Rule
	err = storage.Rules.Scan(tx, storage.Query{Org: org}, func(_ []byte, rule *engine.Rule) (bool, error) {
		if engine.MayImport(rule.Condition) {
			rules = append(rules, *rule)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return check(old, libraries, rules)
}

// Library returns the library called name, or storage.ErrNotFound.
func (r *Registry) Library(ctx context.Context, org, name string) (*engine.Library, error) {
	return get(ctx, r, storage.Libraries, org, name)
}

// Libraries returns all libraries of org in the order of their names.
func (r *Registry) Libraries(ctx context.Context, org string) ([]engine.Library, error) {
	return read(ctx, r, func(tx storage.Reader) ([]engine.Library, error) { return values(tx, storage.Libraries, org) })
}

// ListLibraries returns a page of org's libraries in the order of their names.
func (r *Registry) ListLibraries(
	ctx context.Context, org string, p storage.Page,
) (libraries []*engine.Library, next string, err error) {
	return list(ctx, r, storage.Libraries, org, storage.ByID, p, all)
}

// Uses has the documents that a rule refers to.
type Uses struct {
	// Lists has the names of the lists, and Texts the names of the lists that the rule
	// uses as texts.
	Lists, Texts []string
	// Libraries has the revisions of the libraries with which the rule was compiled, by name.
	Libraries map[string]int64
}

// have returns an error unless the documents of uses are there: a [*MissingListError], a [*NoTextsError], or a
// [*LibraryChangedError] for a library that is missing or has another revision.
func have(tx storage.Reader, org string, uses []Uses) error {
	for _, u := range uses {
		if err := haveLists(tx, org, u.Lists, u.Texts); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(u.Libraries)) {
			l, err := storage.Libraries.Get(tx, org, name)
			if errors.Is(err, storage.ErrNotFound) || err == nil && l.Revision != u.Libraries[name] {
				return &LibraryChangedError{name}
			}
			if err != nil {
				return fmt.Errorf("reading a library: %w", err)
			}
		}
	}
	return nil
}
