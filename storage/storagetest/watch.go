package storagetest

import (
	"cmp"
	"math"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// watch starts a watcher that runs until the test ends. The watcher gets only changes after this
// call.
func (d *docs) watch() *Heard {
	d.Helper()
	d.WantErr("Barrier", d.Barrier(d.Context()), nil)
	var h Heard
	d.Cleanup(d.Watch(h.Add))
	return &h
}

func changeOf(revision uint64, id string) storage.Change {
	return storage.Change{Revision: revision, Kind: storage.RuleKind, Org: "org", ID: id, Digest: digestOf(id)}
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
	{"Changes returns whole revisions, and Trim forgets them", func(d *docs) {
		first := d.update("org", put("org", "a", "b"))
		second := d.update("org", put("org", "c"))
		want := []storage.Change{changeOf(first, "a"), changeOf(first, "b"), changeOf(second, "c")}
		list := func(after uint64, max int, want ...storage.Change) {
			d.Helper()
			got, err := d.Changes(d.Context(), after, max)
			d.WantErr("Changes", err, nil)
			d.wantChanges("Changes", got, want...)
		}
		list(0, 1, want[:2]...)
		list(0, 2, want[:2]...)
		list(0, 3, want...)
		list(0, 9, want...)
		list(first, 1, want[2:]...)
		list(second, 1)
		list(math.MaxUint64, 1)
		for range 2 {
			d.WantErr("Trim", d.Trim(d.Context(), first), nil)
			list(0, 9, want[2:]...)
		}
		d.WantErr("Trim of what is to come", d.Trim(d.Context(), math.MaxUint64), nil)
		list(0, 9)
		third := d.update("org", put("org", "d"))
		list(0, 9, changeOf(third, "d"))
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
		if age := d.FreshFor(); age < 0 || age > storage.MaxAge {
			d.Errorf("FreshFor = %v, want less than 2 s", age)
		}
	}},
}
