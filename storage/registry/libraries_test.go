package registry_test

import (
	"errors"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// anyLibraries accepts every change of libraries.
func anyLibraries(*engine.Library, []engine.Library, []engine.Rule) error { return nil }

func (w *world) putLibrary(org, name, source string) *engine.Library {
	w.Helper()
	l, _, err := w.PutLibrary(w.ctx, org, name, map[string]string{"a.rego": source}, noon, anyLibraries)
	w.Must("PutLibrary", err)
	return l
}

var libraryTests = []test{
	{"PutLibrary stores the next version, and the same modules are none", func(w *world) {
		w.putLibrary("org", "net", "1")
		changes := 0
		stop := w.docs.Watch(func(storage.Change) { changes++ })
		defer stop()
		if l := w.putLibrary("org", "net", "1"); l.Version != 1 || changes != 0 {
			w.Errorf("the same modules: version %d, %d changes; want 1, 0", l.Version, changes)
		}
		l, created, err := w.PutLibrary(w.ctx, "org", "net", map[string]string{"b.rego": "2"}, noon.Add(time.Second), anyLibraries)
		w.Must("PutLibrary", err)
		if created || l.Version != 2 || !l.CreatedAt.Equal(noon) || changes == 0 {
			w.Errorf("PutLibrary = %+v, created %v, %d changes", l, created, changes)
		}
		got, err := w.Library(w.ctx, "org", "net")
		w.Must("Library", err)
		w.WantSame("Library", got, l)
	}},
	{"a library is its organization's", func(w *world) {
		w.putLibrary("org", "net", "1")
		_, err := w.Library(w.ctx, "other", "net")
		w.WantErr("Library of another organization", err, storage.ErrNotFound)
		w.WantErr("DeleteLibrary of another organization", w.DeleteLibrary(w.ctx, "other", "net", anyLibraries), storage.ErrNotFound)
		if all, err := w.Libraries(w.ctx, "other"); len(all) != 0 || err != nil {
			w.Errorf("Libraries of another organization = %v, %v; want none", all, err)
		}
	}},
	{"a check sees the libraries as they would be and the rules, and its error changes nothing", func(w *world) {
		w.putLibrary("org", "a", "1")
		w.put("org", rule("r"))
		using := rule("u")
		using.Condition = `{"rego":"data.lib.a.f"}`
		w.put("org", using)
		no := errors.New("no")
		refuse := func(wantOld bool, want ...string) registry.LibraryCheck {
			return func(old *engine.Library, next []engine.Library, rules []engine.Rule) error {
				var names []string
				for _, l := range next {
					names = append(names, l.Name+l.Modules["a.rego"])
				}
				if strings.Join(names, " ") != strings.Join(want, " ") || (old != nil) != wantOld || len(rules) != 1 || rules[0].ID != "u" {
					w.Errorf("the check gets %v, %q and %v; want %q and the rule u", old, names, rules, want)
				}
				return no
			}
		}
		_, _, err := w.PutLibrary(w.ctx, "org", "b", map[string]string{"a.rego": "2"}, noon, refuse(false, "a1", "b2"))
		w.WantErr("PutLibrary", err, no)
		_, _, err = w.PutLibrary(w.ctx, "org", "a", map[string]string{"a.rego": "3"}, noon, refuse(true, "a3"))
		w.WantErr("PutLibrary", err, no)
		w.WantErr("DeleteLibrary", w.DeleteLibrary(w.ctx, "org", "a", refuse(true)), no)
		if all, err := w.Libraries(w.ctx, "org"); err != nil || len(all) != 1 || all[0].Modules["a.rego"] != "1" {
			w.Errorf("Libraries = %v, %v; want the first a", all, err)
		}
	}},
	{"a rule is not stored if a library that it was compiled with has changed", func(w *world) {
		first := w.putLibrary("org", "net", "1")
		stored, err := w.Library(w.ctx, "org", "net")
		w.Must("Library", err)
		uses := registry.Uses{Libraries: map[string]int64{"net": stored.Revision}}
		w.Must("PutRule", w.PutRule(w.ctx, "org", rule("r"), 0, uses))
		w.putLibrary("org", "net", "2")
		var changed *registry.LibraryChangedError
		if err := w.PutRule(w.ctx, "org", rule("s"), 0, uses); !errors.As(err, &changed) || changed.Name != "net" {
			w.Errorf("PutRule after a change = %v, want a LibraryChangedError", err)
		}
		keep := func(r engine.Rule) (engine.Rule, error) { r.Priority++; return r, nil }
		if _, err := w.UpdateRule(w.ctx, "org", "r", keep, uses); !errors.As(err, &changed) {
			w.Errorf("UpdateRule after a change = %v, want a LibraryChangedError", err)
		}
		w.Must("DeleteLibrary", w.DeleteLibrary(w.ctx, "org", "net", anyLibraries))
		w.putLibrary("org", "net", "1")
		if err := w.PutRule(w.ctx, "org", rule("s"), 0, uses); !errors.As(err, &changed) {
			w.Errorf("PutRule with a library that was made again as version %d = %v, want a LibraryChangedError", first.Version, err)
		}
		w.wantRules("org", *rule("r"))
	}},
	{"all libraries of an organization together are bounded, and deleted ones give their room back", func(w *world) {
		large := strings.Repeat("x", storage.MaxLibraryBytes/2)
		w.putLibrary("org", "a", large)
		_, _, err := w.PutLibrary(w.ctx, "org", "b", map[string]string{"a.rego": large}, noon, anyLibraries)
		if full := (*storage.LimitError)(nil); !errors.As(err, &full) {
			w.Errorf("PutLibrary beyond the bound = %v, want a LimitError", err)
		}
		w.Must("DeleteLibrary", w.DeleteLibrary(w.ctx, "org", "a", anyLibraries))
		w.putLibrary("org", "b", large)
	}},
	{"the revision of rules and libraries grows with a library", func(w *world) {
		w.put("org", rule("r"))
		_, before, err := w.AllRules(w.ctx, "org")
		w.Must("AllRules", err)
		w.putLibrary("org", "net", "1")
		rules, libraries, after, err := w.RulesAndLibraries(w.ctx, "org")
		w.Must("RulesAndLibraries", err)
		w.Must("DeleteLibrary", w.DeleteLibrary(w.ctx, "org", "net", anyLibraries))
		_, last, err := w.AllRules(w.ctx, "org")
		w.Must("AllRules", err)
		if len(rules) != 1 || len(libraries) != 1 || before >= after || after >= last {
			w.Errorf("%d rules, %d libraries, revisions %d, %d, %d; want them to grow", len(rules), len(libraries), before, after, last)
		}
	}},
}
