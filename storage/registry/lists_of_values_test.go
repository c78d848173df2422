package registry_test

import (
	"errors"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

func (w *world) putList(org, name string, values ...string) *engine.List {
	w.Helper()
	l, _, err := w.PutList(w.ctx, org, engine.List{Name: name, Values: values}, noon, nil, nil)
	w.Must("PutList", err)
	return l
}

// looksIn returns a function that reports whether a rule's condition contains the quoted name of a
// list.
func looksIn(name string) func(engine.Rule) bool {
	return func(r engine.Rule) bool { return strings.Contains(r.Condition, `"`+name+`"`) }
}

func (w *world) listBytes(org string) (n int64) {
	w.Helper()
	w.Must("View", w.docs.View(w.ctx, func(r storage.Reader) error {
		c, err := storage.AllCounts.Get(r, org, "")
		if err == nil {
			n = c.ListBytes
		}
		return err
	}))
	return n
}

var namedListTests = []test{
	{"PutList stores the values sorted, each once, as the next version", func(w *world) {
		l, created, err := w.PutList(w.ctx, "org", engine.List{Name: "payees", Values: []string{"b", "a", "b"}}, noon, nil, nil)
		w.Must("PutList", err)
		want := &engine.List{Name: "payees", Values: []string{"a", "b"}, Version: 1, CreatedAt: noon, UpdatedAt: noon}
		w.WantSame("PutList", l, want)
		if !created {
			w.Error("PutList of a new list says that it was there")
		}
		l, created, err = w.PutList(w.ctx, "org", engine.List{Name: "payees", Values: []string{"c"}}, noon.Add(time.Second), nil, nil)
		w.Must("PutList", err)
		want.Values, want.Version, want.UpdatedAt = []string{"c"}, 2, noon.Add(time.Second)
		w.WantSame("PutList", l, want)
		if created {
			w.Error("PutList of the next version says that it made the list")
		}
		got, err := w.List(w.ctx, "org", "payees")
		w.Must("List", err)
		w.WantSame("List", got, want)
	}},
	{"the same values are no new version and no change", func(w *world) {
		first := w.putList("org", "payees", "a", "b")
		changes := 0
		stop := w.docs.Watch(func(storage.Change) { changes++ })
		defer stop()
		l, created, err := w.PutList(w.ctx, "org", engine.List{Name: "payees", Values: []string{"b", "a"}}, noon.Add(time.Hour), nil, nil)
		w.Must("PutList", err)
		w.WantSame("PutList", l, first)
		if created || changes > 0 {
			w.Errorf("created %v, %d changes; want false, 0", created, changes)
		}
	}},
	{"a list is its organization's", func(w *world) {
		w.putList("org", "payees", "a")
		_, err := w.List(w.ctx, "other", "payees")
		w.WantErr("List of another organization", err, storage.ErrNotFound)
		w.WantErr("DeleteList of another organization", w.DeleteList(w.ctx, "other", "payees", looksIn("payees"), nil), storage.ErrNotFound)
		lists, revision, err := w.Lists(w.ctx, "other", []string{"payees"})
		if len(lists) != 0 || revision != 0 || err != nil {
			w.Errorf("Lists of another organization = %v, %d, %v; want none", lists, revision, err)
		}
	}},
	{"Lists returns those that are there and a revision that grows with each change of one", func(w *world) {
		w.putList("org", "a", "1")
		w.putList("org", "b", "2")
		w.putList("org", "c", "3")
		lists, revision, err := w.Lists(w.ctx, "org", []string{"a", "b", "gone"})
		w.Must("Lists", err)
		w.Must("DeleteList", w.DeleteList(w.ctx, "org", "a", looksIn("none"), nil))
		rest, after, err := w.Lists(w.ctx, "org", []string{"a", "b", "gone"})
		w.Must("Lists", err)
		if len(lists) != 2 || lists[0].Name != "a" || lists[1].Name != "b" || revision < lists[1].Revision ||
			len(rest) != 1 || after <= revision {
			w.Errorf("Lists = %v, %d, then %v, %d; want a and b, then b, and revisions that grow", lists, revision, rest, after)
		}
	}},
	{"a rule is not stored while a list that it looks in is missing", func(w *world) {
		var missing *registry.MissingListError
		if err := w.PutRule(w.ctx, "org", rule("r"), 0, registry.Uses{Lists: []string{"payees"}}); !errors.As(err, &missing) || missing.Name != "payees" {
			w.Errorf("PutRule = %v, want a MissingListError of payees", err)
		}
		w.wantRules("org")
		w.put("org", rule("r"))
		keep := func(r engine.Rule) (engine.Rule, error) { r.Priority++; return r, nil }
		if _, err := w.UpdateRule(w.ctx, "org", "r", keep, registry.Uses{Lists: []string{"payees"}}); !errors.As(err, &missing) {
			w.Errorf("UpdateRule = %v, want a MissingListError", err)
		}
		w.wantRules("org", *rule("r"))
		w.putList("org", "payees")
		_, err := w.UpdateRule(w.ctx, "org", "r", keep, registry.Uses{Lists: []string{"payees"}})
		w.Must("UpdateRule", err)
	}},
	{"a list that rules look in is not deleted, and they are named", func(w *world) {
		w.putList("org", "payees", "a")
		used := rule("r")
		used.Condition, used.IsActive = `{"metadata.to":{"$in":{"list":"payees"}}}`, false
		w.Must("PutRule", w.PutRule(w.ctx, "org", used, 0, registry.Uses{Lists: []string{"payees"}}))
		var inUse *registry.ListInUseError
		err := w.DeleteList(w.ctx, "org", "payees", looksIn("payees"), nil)
		if !errors.As(err, &inUse) || len(inUse.Rules) != 1 || !strings.Contains(err.Error(), `"no deploys on Friday" (r)`) {
			w.Errorf("DeleteList = %v, want a ListInUseError that names the rule", err)
		}
		w.Must("DeleteRule", w.DeleteRule(w.ctx, "org", "r", nil))
		w.Must("DeleteList", w.DeleteList(w.ctx, "org", "payees", looksIn("payees"), nil))
		_, err = w.List(w.ctx, "org", "payees")
		w.WantErr("List", err, storage.ErrNotFound)
		if n := w.listBytes("org"); n != 0 {
			w.Errorf("%d bytes of lists are counted, want 0", n)
		}
	}},
	{"a document is stored in the form of RFC 8785, and the same document is no new version", func(w *world) {
		put := func(data string) *engine.List {
			l, _, err := w.PutList(w.ctx, "org", engine.List{Name: "limits", Data: []byte(data)}, noon, nil, nil)
			w.Must("PutList", err)
			return l
		}
		first := put(`{"b": [1.50, 1e1], "a": {}}`)
		want := &engine.List{Name: "limits", Data: []byte(`{"a":{},"b":[1.5,10]}`), Version: 1, CreatedAt: noon, UpdatedAt: noon}
		w.WantSame("PutList", first, want)
		w.WantSame("PutList again", put(`{"a":{},"b":[1.5,10.0]}`), first)
		got, err := w.List(w.ctx, "org", "limits")
		w.Must("List", err)
		w.WantSame("List", got, want)
		if n := w.listBytes("org"); n != int64(want.Size()) {
			w.Errorf("%d bytes of lists are counted, want %d", n, want.Size())
		}
		if next := put(`{"a":{},"b":[1.5]}`); next.Version != 2 {
			w.Errorf("another document has version %d, want 2", next.Version)
		}
		values := w.putList("org", "limits")
		w.WantSame("PutList of no values", values, &engine.List{Name: "limits", Values: []string{}, Version: 3, CreatedAt: noon, UpdatedAt: noon})
	}},
	{"a list in which rules look for texts does not become another document", func(w *world) {
		put := func(data string) error {
			_, _, err := w.PutList(w.ctx, "org", engine.List{Name: "payees", Data: []byte(data)}, noon, looksIn("payees"), nil)
			return err
		}
		w.putList("org", "payees", "a")
		used := rule("r")
		used.Condition = `{"metadata.to":{"$in":{"list":"payees"}}}`
		uses := registry.Uses{Lists: []string{"payees"}, Texts: []string{"payees"}}
		w.Must("PutRule", w.PutRule(w.ctx, "org", used, 0, uses))
		w.Must("PutList of texts as data", put(`["b","a"]`))
		for _, data := range []string{`{}`, `[1]`, `[""]`, `"a"`} {
			if inUse := (*registry.ListInUseError)(nil); !errors.As(put(data), &inUse) {
				w.Errorf("PutList of %s did not return a ListInUseError", data)
			}
		}
		w.Must("DeleteRule", w.DeleteRule(w.ctx, "org", "r", nil))
		w.Must("PutList", put(`{}`))
		var other *registry.NoTextsError
		if err := w.PutRule(w.ctx, "org", used, 0, uses); !errors.As(err, &other) || other.Name != "payees" {
			w.Errorf("PutRule = %v, want a NoTextsError of payees", err)
		}
		w.Must("PutRule that reads the document", w.PutRule(w.ctx, "org", rule("d"), 0, registry.Uses{Lists: []string{"payees"}}))
	}},
	{"all lists of an organization together are bounded", func(w *world) {
		values := make([]string, engine.MaxListValues)
		for i := range values {
			values[i] = strings.Repeat("x", 240) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		}
		for _, name := range []string{"a", "b"} {
			w.putList("org", name, values...)
		}
		before := w.listBytes("org")
		_, _, err := w.PutList(w.ctx, "org", engine.List{Name: "c", Values: values}, noon, nil, nil)
		if full := (*storage.LimitError)(nil); !errors.As(err, &full) {
			w.Errorf("PutList of a third list of %d values = %v, want a LimitError", len(values), err)
		}
		w.putList("org", "b", "small")
		w.putList("org", "c", values...)
		if after := w.listBytes("org"); after <= before || after > 2*storage.MaxBody {
			w.Errorf("%d bytes of lists are counted, want more than %d and at most %d", after, before, 2*storage.MaxBody)
		}
	}},
}
