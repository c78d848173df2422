package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// anyLibraries is a [registry.LibraryCheck] that accepts every change.
func anyLibraries(*engine.Library, []engine.Library, []engine.Rule) error { return nil }

// errCycle is the error of acyclic.
var errCycle = errors.New("the libraries import each other")

// acyclic is a [registry.LibraryCheck] that refuses libraries that import each other, and the import of a
// library that is not there. The source of a library names the libraries that it imports.
func acyclic(_ *engine.Library, next []engine.Library, _ []engine.Rule) error {
	imports := make(map[string][]string)
	for _, l := range next {
		imports[l.Name] = strings.Fields(l.Modules["a.rego"])
	}
	for len(imports) > 0 {
		left := len(imports)
		maps.DeleteFunc(imports, func(_ string, names []string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { _, there := imports[name]; return there })
		})
		if len(imports) == left {
			return errCycle
		}
	}
	return nil
}

// unchanged returns a check that refuses a library that has changed since l was read, as If-Match does.
func unchanged(l *engine.Library) registry.LibraryCheck {
	return func(old *engine.Library, _ []engine.Library, _ []engine.Rule) error {
		if old == nil || old.Revision != l.Revision {
			return errRefused
		}
		return nil
	}
}

func (d *desk) library(org, name, source string) *engine.Library {
	d.Helper()
	l, _, err := d.PutLibrary(d.Context(), org, name, map[string]string{"a.rego": source}, noon, anyLibraries)
	d.Must("PutLibrary", err)
	stored, err := d.Library(d.Context(), org, name)
	d.Must("Library", err)
	l.Revision = stored.Revision
	d.WantSame("Library after PutLibrary", stored, l)
	return stored
}

// wantLibraries checks the names of all libraries of org, and the pages of them.
func (d *desk) wantLibraries(org string, want ...string) {
	d.Helper()
	all, err := d.Libraries(d.Context(), org)
	d.Must("Libraries", err)
	names, paged := []string(nil), []string(nil)
	for _, l := range all {
		names = append(names, l.Name)
	}
	for p := (storage.Page{Limit: 2}); ; {
		found, next, err := d.ListLibraries(d.Context(), org, p)
		d.Must("ListLibraries", err)
		for _, l := range found {
			paged = append(paged, l.Name)
		}
		if p.After = next; next == "" {
			break
		}
	}
	d.WantSame("Libraries", names, want)
	d.WantSame("ListLibraries", paged, want)
}

var libraryTests = []docTest{
	{"a library is stored, replaced, listed in the order of the names, and deleted", func(t *docs) {
		d := newDesk(t)
		d.wantLibraries("org")
		for _, name := range []string{"net", "a", "z9", "a_b"} {
			if l := d.library("org", name, "1"); l.Version != 1 {
				d.Errorf("a new library has version %d, want 1", l.Version)
			}
		}
		d.wantLibraries("org", "a", "a_b", "net", "z9")
		first := d.library("org", "net", "1")
		if l := d.library("org", "net", "2"); l.Version != 2 || l.Revision <= first.Revision || !l.CreatedAt.Equal(noon) {
			d.Errorf("a changed library is %+v after %+v", l, first)
		}
		d.Must("DeleteLibrary", d.DeleteLibrary(d.Context(), "org", "net", anyLibraries))
		d.wantLibraries("org", "a", "a_b", "z9")
		_, err := d.Library(d.Context(), "org", "net")
		d.WantErr("Library after it was deleted", err, storage.ErrNotFound)
		d.WantErr("DeleteLibrary of none", d.DeleteLibrary(d.Context(), "org", "net", anyLibraries), storage.ErrNotFound)
	}},
	{"a library that decided keeps its revisions, a deleted one too", func(t *docs) {
		d := newDesk(t)
		var want []string
		var stored []*engine.Library
		for _, source := range []string{"1", "2", "3"} {
			stored = append(stored, d.library("org", "net", source))
			want = append([]string{source}, want...)
			d.load("org")
		}
		d.library("org", "net", "never loaded")
		d.Must("DeleteLibrary", d.DeleteLibrary(d.Context(), "org", "net", anyLibraries))
		var got []string
		for p := (storage.Page{Limit: 2}); ; {
			found, next, err := d.LibraryRevisions(d.Context(), "org", "net", p)
			d.Must("LibraryRevisions", err)
			for _, r := range found {
				got = append(got, r.Document.Modules["a.rego"])
			}
			if p.After = next; next == "" {
				break
			}
		}
		d.WantSame("revisions", got, want)
		for _, l := range stored {
			at, err := d.LibraryAt(d.Context(), "org", "net", l.Revision)
			d.Must("LibraryAt", err)
			d.WantSame("LibraryAt", at, l)
		}
		d.wantLoaded("org")
	}},
	{"a change whose check fails changes nothing, and the check has the stored library", func(t *docs) {
		d := newDesk(t)
		first := d.library("org", "net", "1")
		second, _, err := d.PutLibrary(d.Context(), "org", "net", map[string]string{"a.rego": "2"}, noon.Add(time.Second), unchanged(first))
		d.Must("PutLibrary of the version that was read", err)
		_, _, err = d.PutLibrary(d.Context(), "org", "net", map[string]string{"a.rego": "3"}, noon, unchanged(first))
		d.WantErr("PutLibrary of an older version", err, errRefused)
		d.WantErr("DeleteLibrary of an older version", d.DeleteLibrary(d.Context(), "org", "net", unchanged(first)), errRefused)
		_, _, err = d.PutLibrary(d.Context(), "org", "new", map[string]string{"a.rego": "3"}, noon, unchanged(first))
		d.WantErr("PutLibrary of one that is not there", err, errRefused)
		got, err := d.Library(d.Context(), "org", "net")
		d.Must("Library", err)
		d.WantSame("modules", got.Modules, second.Modules)
		d.Must("DeleteLibrary of the version that was read", d.DeleteLibrary(d.Context(), "org", "net", unchanged(got)))
	}},
	{"another organization's libraries behave exactly as missing ones", func(t *docs) {
		d := newDesk(t)
		at := d.library("org", "net", "1").Revision
		d.load("org")
		d.library("org", "net", "2")
		for _, other := range []string{"or", "orgg", "org\x00", "other"} {
			_, err := d.Library(d.Context(), other, "net")
			d.WantErr("Library", err, storage.ErrNotFound)
			_, err = d.LibraryAt(d.Context(), other, "net", at)
			d.WantErr("LibraryAt", err, storage.ErrNotFound)
			_, _, err = d.LibraryRevisions(d.Context(), other, "net", storage.Page{Limit: 1})
			d.WantErr("LibraryRevisions", err, storage.ErrNotFound)
			d.WantErr("DeleteLibrary", d.DeleteLibrary(d.Context(), other, "net", anyLibraries), storage.ErrNotFound)
			d.wantLibraries(other)
		}
		d.library("other", "net", "theirs")
		d.wantLibraries("org", "net")
		got, err := d.Library(d.Context(), "org", "net")
		d.Must("Library", err)
		d.WantSame("modules", got.Modules, map[string]string{"a.rego": "2"})
	}},
	{"a rule is not stored with a library that has changed since it was compiled", func(t *docs) {
		d := newDesk(t)
		uses := registry.Uses{Libraries: map[string]int64{"net": d.library("org", "net", "1").Revision}}
		d.Must("PutRule", d.PutRule(d.Context(), "org", &engine.Rule{ID: "r"}, 0, uses))
		d.library("org", "net", "2")
		changed := (*registry.LibraryChangedError)(nil)
		if err := d.PutRule(d.Context(), "org", &engine.Rule{ID: "s"}, 0, uses); !errors.As(err, &changed) || changed.Name != "net" {
			d.Errorf("PutRule after a change = %v, want a LibraryChangedError", err)
		}
		d.wantIDs(rulesOf("org"), "r")
	}},
	{"changes that race cannot make a cycle: each check has what the others stored", func(t *docs) {
		d := newDesk(t)
		d.library("org", "l0", "")
		refused := make([]bool, Racers)
		Race(func(i int) { // each library imports the next one, and the last one the first
			imports := map[string]string{"a.rego": fmt.Sprint("l", (i+1)%Racers)}
			_, _, err := d.PutLibrary(d.Context(), "org", fmt.Sprint("l", i), imports, noon, acyclic)
			if refused[i] = errors.Is(err, errCycle); !refused[i] && err != nil {
				d.Errorf("PutLibrary = %v", err)
			}
		})
		if n := len(slices.DeleteFunc(refused, func(r bool) bool { return !r })); n != 1 {
			d.Errorf("%d of %d changes were refused, want the one that closes the cycle", n, Racers)
		}
		all, err := d.Libraries(d.Context(), "org")
		d.Must("Libraries", err)
		d.WantErr("the check of what is stored", acyclic(nil, all, nil), nil)
	}},
}
