package storagetest

import (
	"cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// watch starts a watcher that runs until the test ends. The watcher gets only changes after this
// call.
func (d *docs) watch() *Heard {
	d.Helper()
	d.update("org", func(storage.Tx) error { return nil }) // finds all earlier changes
	d.WantErr("Barrier", d.Barrier(d.Context()), nil)
	var h Heard
	d.Cleanup(d.Watch(h.Add))
	return &h
}

func changeOf(revision uint64, id string) storage.Change {
	return storage.Change{Revision: revision, Kind: storage.RuleKind, Org: "org", ID: id, Digest: digestOf(id)}
}

// changes returns all changes by their organization. It reads them in parts of at least max changes.
func (d *docs) changes(max int) map[string][]storage.Change {
	d.Helper()
	all := make(map[string][]storage.Change)
	for after := (storage.Change{}); ; {
		part, err := d.Changes(d.Context(), after, max)
		if d.WantErr("Changes", err, nil); len(part) == 0 {
			return all
		}
		for _, c := range part {
			all[c.Org] = append(all[c.Org], c)
		}
		after = part[len(part)-1]
	}
}

var watchTests = []docTest{
	{"Watch tells of every change before the Update that made it returns, each once, in order", func(d *docs) {
		h := d.watch()
		revision := d.update("org", put("org", "b", "a", "b"))
		d.wantChanges("changes", h.Take(), changeOf(revision, "b"), changeOf(revision, "a"))
		revision = d.update("org", func(tx storage.Tx) error { return tx.Delete(storage.RuleKind, "org", "a") })
		d.wantChanges("changes of a removal", h.Take(), storage.Change{Revision: revision, Kind: storage.RuleKind, Org: "org", ID: "a"})
		d.update("org", func(storage.Tx) error { return nil })
		d.update("org", countRule)
		if _, err := d.Update(d.Context(), "org", func(tx storage.Tx) error { return cmp.Or(put("org", "c")(tx), errRefused) }); err == nil {
			d.Error("Update = nil, want an error")
		}
		d.wantChanges("changes of nothing, of what is quiet, and of what failed", h.Take())
	}},
	{"a change has the names of its document and its actor", func(d *docs) {
		h := d.watch()
		_, err := d.Update(storage.WithActor(d.Context(), "key:k"), "org", func(tx storage.Tx) error {
			err := storage.Agents.Put(tx, "org", &engine.Agent{ID: "a", ExternalID: "x"})
			if err == nil {
				err = storage.Policies.Put(tx, "org", &engine.ActionPolicy{OrganizationID: "org", PolicyID: "p", Version: 3})
			}
			return err
		})
		d.WantErr("Update", err, nil)
		got := h.Take()
		for i := range got {
			got[i].Revision, got[i].Digest = 0, [32]byte{}
		}
		d.wantChanges("changes", got,
			storage.Change{Kind: storage.AgentKind, Org: "org", ID: "a", Alias: "x", Actor: "key:k"},
			storage.Change{Kind: storage.PolicyKind, Org: "org", ID: "p", Actor: "key:k"})
	}},
	{"Changes returns whole revisions, in the order of each organization", func(d *docs) {
		first := d.update("org", put("org", "a", "b"))
		other := d.update("other", put("other", "x"))
		second := d.update("org", put("org", "c"))
		d.update("org", countRule)
		for max, want := range map[int]int{1: 1, 2: 2, 3: 3, 9: 4} {
			got, err := d.Changes(d.Context(), storage.Change{}, max)
			if d.WantErr("Changes", err, nil); len(got) < want || max == 9 && len(got) != 4 {
				d.Errorf("Changes of at least %d = %d changes, want %d", max, len(got), want)
			}
		}
		for _, max := range []int{1, 2, 9} {
			all := d.changes(max)
			d.wantChanges("Changes", all["org"], changeOf(first, "a"), changeOf(first, "b"), changeOf(second, "c"))
			if got := all["other"]; len(got) != 1 || got[0].Revision != other || got[0].ID != "x" {
				d.Errorf("changes of the other organization = %+v, want that of x", got)
			}
		}
	}},
	{"Trim removes the revisions that it is given, and no others", func(d *docs) {
		first := d.update("org", put("org", "a", "b"))
		second := d.update("org", put("org", "c"))
		for range 2 {
			d.WantErr("Trim", d.Trim(d.Context(), []storage.Change{changeOf(second, "c")}), nil)
			d.wantChanges("changes that were not trimmed", d.changes(9)["org"], changeOf(first, "a"), changeOf(first, "b"))
		}
		third := d.update("org", put("org", "d"))
		given, err := d.Changes(d.Context(), storage.Change{}, 9)
		d.WantErr("Changes", err, nil)
		d.update("before", put("before", "late")) // an organization that comes before the other
		fourth := d.update("org", put("org", "late"))
		d.WantErr("Trim", d.Trim(d.Context(), given), nil)
		all := d.changes(1)
		d.wantChanges("changes after what was trimmed", all["org"], changeOf(fourth, "late"))
		if len(all["before"]) != 1 {
			d.Errorf("changes of another organization that came late = %+v, want one", all["before"])
		}
		if third >= fourth {
			d.Errorf("revision %d after %d", fourth, third)
		}
		d.WantErr("Trim of nothing", d.Trim(d.Context(), nil), nil)
	}},
	{"documents without an organization have an order of their own", func(d *docs) {
		last := uint64(0)
		for _, id := range []string{"a", "b", "a"} {
			d.update("org", put("org", id))
			revision := d.update("", func(tx storage.Tx) error {
				return storage.PublicKeys.Put(tx, "", &storage.PublicKey{ID: id})
			})
			if revision <= last {
				d.Errorf("revision %d after %d", revision, last)
			}
			last = revision
		}
		if got := d.changes(9)[""]; len(got) > 0 {
			d.Errorf("changes of quiet documents = %+v, want none", got)
		}
	}},
	{"every watcher is called until its own stop", func(d *docs) {
		var first, second Heard
		stopFirst, stopSecond := d.Watch(first.Add), d.Watch(second.Add)
		d.update("org", put("org", "a"))
		stopFirst()
		stopFirst()
		d.update("org", put("org", "a"))
		stopSecond()
		d.update("org", put("org", "a"))
		if a, b := len(first.Take()), len(second.Take()); a != 1 || b != 2 {
			d.Errorf("the watchers heard %d and %d changes, want 1 and 2", a, b)
		}
	}},
	{"a change must be visible to reads when the watcher hears of it", func(d *docs) {
		signal, seen := make(chan storage.Change), make(chan string)
		defer d.Watch(func(c storage.Change) {
			signal <- c // the other goroutine reads before the write returns
			<-seen
		})()
		for _, id := range []string{"a", "b", "c"} {
			done := make(chan error)
			go func() {
				_, err := d.Update(d.Context(), "org", put("org", id))
				done <- err
			}()
			c := <-signal
			d.view(func(r storage.Reader) error {
				doc, err := r.Get(storage.RuleKind, "org", id)
				if doc.Revision != c.Revision {
					d.Errorf("Get while the watcher is told = revision %d, want %d", doc.Revision, c.Revision)
				}
				return err
			})
			seen <- id
			d.WantErr("Update", <-done, nil)
		}
	}},
	{"Barrier returns where nobody else is to hear", func(d *docs) {
		d.WantErr("Barrier", d.Barrier(d.Context()), nil)
		d.wait("a store that is fresh", func() bool { // the machine may be busy
			age := d.FreshFor()
			return age >= 0 && age <= storage.MaxAge
		})
	}},
}
