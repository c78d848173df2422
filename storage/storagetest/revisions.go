package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// desk is a registry of rules, lists and libraries. It remembers the documents that were loaded at each
// revision.
type desk struct {
	*docs
	*registry.Registry
	mu     sync.Mutex
	loaded map[int64]standing
}

// standing is what stood at a revision.
type standing struct {
	Rules     []engine.Rule
	Libraries []engine.Library
	Lists     []engine.List
}

var listsOfTests = []string{"x", "y"}

func newDesk(d *docs) *desk {
	return &desk{docs: d, Registry: registry.New(d.Documents), loaded: make(map[int64]standing)}
}

// load loads the rules as a process does that decides by them, and remembers them.
func (d *desk) load(org string) int64 {
	d.Helper()
	for {
		var s standing
		var at, changed int64
		var err error
		s.Rules, s.Libraries, at, err = d.RulesAndLibraries(d.Context(), org)
		d.Must("RulesAndLibraries", err)
		s.Lists, changed, err = d.Lists(d.Context(), org, listsOfTests)
		d.Must("Lists", err)
		if changed > at {
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if before, ok := d.loaded[at]; ok {
			d.WantSame(fmt.Sprintf("what stands at revision %d once more", at), s, before)
		}
		d.loaded[at] = s
		return at
	}
}

// wantLoaded checks that everything that was loaded can still be read as it stood.
func (d *desk) wantLoaded(org string) {
	d.Helper()
	for at, want := range d.loaded {
		var got standing
		var err error
		got.Rules, got.Libraries, err = d.RulesAt(d.Context(), org, registry.Then{Revision: at})
		d.Must("RulesAt", err)
		got.Lists, err = d.ListsAt(d.Context(), org, listsOfTests, registry.Then{Revision: at})
		d.Must("ListsAt", err)
		if diff := cmp.Diff(want, got); diff != "" {
			d.Errorf("at revision %d (-loaded +read later):\n%s", at, diff)
		}
	}
}

func (d *desk) rule(org, id string, priority int64) {
	d.Helper()
	d.Must("PutRule", d.PutRule(d.Context(), org, &engine.Rule{ID: id, Priority: priority}, 0))
}

func (d *desk) deleteRule(org, id string) {
	d.Helper()
	d.Must("DeleteRule", d.DeleteRule(d.Context(), org, id, nil))
}

// revisions returns the priorities of a rule's revisions, newest first.
func (d *desk) revisions(org, id string) (priorities []int64) {
	d.Helper()
	for p := (storage.Page{Limit: 2}); ; {
		found, next, err := d.RuleRevisions(d.Context(), org, id, p)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		d.Must("RuleRevisions", err)
		for i, v := range found {
			priorities = append(priorities, v.Document.Priority)
			at, err := d.RuleAt(d.Context(), org, id, v.Revision)
			d.Must("RuleAt", err)
			d.WantSame("RuleAt", at, v.Document)
			if current := i == 0 && p.After == ""; v.ReplacedAt.IsZero() && !current || v.Revision != v.Document.Revision {
				d.Errorf("revision %d of the rule is %+v", v.Revision, v)
			}
		}
		if p.After = next; next == "" {
			return priorities
		}
	}
}

// change makes one random change.
func (d *desk) change(org string, n *rand.Rand) {
	d.Helper()
	ctx := d.Context()
	id := fmt.Sprint("r", n.IntN(3))
	var err error
	switch n.IntN(7) {
	case 0, 1, 2:
		d.rule(org, id, n.Int64N(1000))
	case 3:
		err = d.DeleteRule(ctx, org, id, nil)
	case 4:
		l := engine.List{Name: listsOfTests[n.IntN(2)], Values: []string{fmt.Sprint(n.IntN(3))}}
		if n.IntN(2) == 0 {
			l.Values, l.Data = nil, fmt.Appendf(nil, `{"é": [%d, {"<": true}]}`, n.IntN(3))
		}
		_, _, err = d.PutList(ctx, org, l, noon, nil, nil)
	case 5:
		_, _, err = d.PutLibrary(ctx, org, "lib", map[string]string{"a.rego": fmt.Sprint(n.IntN(3))}, noon, anyLibraries)
	case 6:
		if n.IntN(2) == 0 {
			err = d.DeleteLibrary(ctx, org, "lib", anyLibraries)
		} else {
			err = d.DeleteList(ctx, org, listsOfTests[n.IntN(2)], func(engine.Rule) bool { return false }, nil)
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		d.Errorf("changing a document = %v", err)
	}
}

var revisionTests = []docTest{
	{"the write that replaces or removes a document keeps it, if it was loaded to decide", func(t *docs) {
		d := newDesk(t)
		d.rule("org", "r", 1)
		d.load("org")
		d.rule("org", "r", 2)
		d.load("org")
		d.WantSame("revisions", d.revisions("org", "r"), []int64{2, 1})
		d.deleteRule("org", "r")
		_, err := d.Rule(d.Context(), "org", "r")
		d.WantErr("Rule after it was deleted", err, storage.ErrNotFound)
		d.WantSame("revisions of a deleted rule", d.revisions("org", "r"), []int64{2, 1})
		found, _, err := d.RuleRevisions(d.Context(), "org", "r", storage.Page{Limit: 9})
		d.Must("RuleRevisions", err)
		if len(found) != 2 || !found[0].Removed || found[1].Removed {
			d.Errorf("revisions of a deleted rule = %+v, want the newest removed", found)
		}
		d.rule("org", "r", 3)
		d.load("org")
		d.WantSame("revisions of a rule that was made again", d.revisions("org", "r"), []int64{3, 2, 1})
		d.wantLoaded("org")
	}},
	{"a document that is replaced before anybody loaded it goes at once", func(t *docs) {
		d := newDesk(t)
		for i := range int64(5) {
			d.rule("org", "r", i)
		}
		d.WantSame("revisions", d.revisions("org", "r"), []int64{4})
		d.load("org")
		for i := range int64(5) {
			d.rule("org", "r", 10+i)
		}
		d.WantSame("revisions", d.revisions("org", "r"), []int64{14, 4})
		d.deleteRule("org", "r")
		d.WantSame("revisions", d.revisions("org", "r"), []int64{4})
		d.wantLoaded("org")
	}},
	{"what stood at each revision that was loaded can be read later", func(t *docs) {
		d := newDesk(t)
		n := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			d.change("org", n)
			if n.IntN(2) == 0 {
				d.load("org")
			}
		}
		d.wantLoaded("org")
	}},
	{"a change that races with a load never loses what was loaded", func(t *docs) {
		d := newDesk(t)
		var all sync.WaitGroup
		for i := range uint64(2) {
			all.Go(func() {
				n := rand.New(rand.NewPCG(3, i))
				for range 40 {
					d.change("org", n)
				}
			})
			all.Go(func() {
				for range 40 {
					d.load("org")
				}
			})
		}
		all.Wait()
		d.wantLoaded("org")
	}},
	{"an update that fails keeps no revision", func(t *docs) {
		d := newDesk(t)
		d.rule("org", "r", 1)
		d.load("org")
		_, err := d.Update(d.Context(), "org", func(tx storage.Tx) error {
			return errors.Join(storage.Retire(tx, storage.RuleKind, "org", "r", true, noon), errRefused)
		})
		d.WantErr("Update", err, errRefused)
		d.WantSame("revisions", d.revisions("org", "r"), []int64{1})
	}},
	{"a sweep removes the revisions that were replaced before a time, and no other", func(t *docs) {
		d := newDesk(t)
		const slack = 4 * storage.MaxSkew
		retire := func(id string, at time.Time) {
			d.update("org", func(tx storage.Tx) error {
				return storage.Retire(tx, storage.RuleKind, "org", id, false, at)
			})
		}
		d.rule("org", "a", 1)
		d.rule("org", "b", 2)
		d.load("org")
		retire("a", noon)
		retire("b", noon.Add(time.Second))
		for i, before := range []time.Duration{0, slack, slack + time.Second} {
			n, err := d.SweepRevisions(d.Context(), "org", noon.Add(before))
			d.Must("SweepRevisions", err)
			d.WantSame("swept", n, i/2)
		}
		d.WantSame("revisions of a", d.revisions("org", "a"), []int64{1})
		d.WantSame("revisions of b", d.revisions("org", "b"), []int64{2, 2})
	}},
	{"EachRevised names each organization that keeps revisions once", func(t *docs) {
		d := newDesk(t)
		want := make(map[string]int)
		for _, org := range Hostile {
			d.rule(org, "r", 1)
			d.rule(org, "s", 1)
			if org == Hostile[0] {
				continue
			}
			d.load(org)
			d.rule(org, "r", 2)
			d.deleteRule(org, "s")
			want[org] = 1
		}
		got := make(map[string]int)
		d.Must("EachRevised", d.EachRevised(d.Context(), func(org string) error {
			got[org]++
			return nil
		}))
		d.WantSame("organizations", got, want)
	}},
	{"another organization's revisions behave exactly as missing ones", func(t *docs) {
		d := newDesk(t)
		d.rule("org", "r", 1)
		at := d.load("org")
		d.rule("org", "r", 2)
		first, _, err := d.RuleRevisions(d.Context(), "org", "r", storage.Page{Limit: 1})
		d.Must("RuleRevisions", err)
		for _, other := range []string{"or", "orgg", "org\x00", "other"} {
			_, _, err := d.RuleRevisions(d.Context(), other, "r", storage.Page{Limit: 1})
			d.WantErr("RuleRevisions", err, storage.ErrNotFound)
			_, err = d.RuleAt(d.Context(), other, "r", first[0].Revision)
			d.WantErr("RuleAt", err, storage.ErrNotFound)
			rules, libraries, err := d.RulesAt(d.Context(), other, registry.Then{Revision: at})
			if len(rules)+len(libraries) > 0 || err != nil {
				d.Errorf("RulesAt of %q = %v, %v, %v; want none", other, rules, libraries, err)
			}
		}
	}},
	{"a cursor of another document's revisions must give ErrBadCursor", func(t *docs) {
		d := newDesk(t)
		for _, id := range []string{"r", "s"} {
			d.rule("org", id, 1)
			d.load("org")
			d.rule("org", id, 2)
		}
		_, next, err := d.RuleRevisions(d.Context(), "org", "r", storage.Page{Limit: 1})
		d.Must("RuleRevisions", err)
		_, _, err = d.RuleRevisions(d.Context(), "org", "s", storage.Page{Limit: 1, After: next})
		d.WantErr("RuleRevisions", err, storage.ErrBadCursor)
		_, _, err = d.ListRevisions(d.Context(), "org", "r", storage.Page{Limit: 1, After: next})
		d.WantErr("ListRevisions", err, storage.ErrBadCursor)
	}},
}
