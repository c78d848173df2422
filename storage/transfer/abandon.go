package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// ErrNoImport means that no import of the organization is unfinished.
var ErrNoImport = errors.New("no import of the organization is unfinished")

// Abandoned is the result of Abandon.
type Abandoned struct {
	// Signed is the entry that announced the removal of rows.
	Signed ledger.Abandonment
	// Documents is the number of removed documents.
	Documents int
	// Kept has the documents that were not removed, because another actor has made or changed
	// them since the import.
	Kept []KeptDocument
}

// KeptDocument is a document that Abandon does not remove.
type KeptDocument struct{ Kind, ID, Actor string }

// Abandon removes everything that an unfinished import has stored, in reverse order. It removes
// keys first, so that nobody can authenticate. It removes policies next, so that nothing is
// decided. Documents that another actor has made or changed since the import stay. Decisions that
// this store has made itself also stay. The removal of each document is a signed change, and one
// signed entry announces the removal of rows. After an interruption, call Abandon again or repeat
// the import.
//
// Abandon returns ErrNoImport, storage.ErrConflict if the store has signed a settlement of an
// imported row, or an error of the store.
func Abandon(ctx context.Context, t Target, org string) (done Abandoned, err error) {
	a := abandoning{ctx: storage.WithActor(ctx, Actor), Target: t, org: org, done: &done}
	for _, f := range []func() error{a.find, a.readMakers, a.documents, a.rows, a.details, a.end} {
		if err := f(); err != nil {
			return done, err
		}
	}
	return done, t.Store.Barrier(ctx)
}

type abandoning struct {
	Target
	ctx    context.Context
	org    string
	found  *storage.Import
	makers map[string]string // actors of the last changes, by kind and name of the document
	done   *Abandoned
}

// find finds the import. It returns an error if the import is finished and signed, or if its rows
// cannot be removed.
func (a *abandoning) find() error {
	err := a.Store.View(a.ctx, func(r storage.Reader) (err error) {
		a.found, err = storage.Imports.Get(r, a.org, "")
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return ErrNoImport
	}
	if err != nil {
		return err
	}
	signed, _, err := a.Store.Entries(a.ctx, a.org, storage.ImportEntry, storage.Page{Limit: 1})
	if err == nil && len(signed) > 0 {
		err = fmt.Errorf("%w: all of it is stored and signed, run the import again to end it", ErrNoImport)
	}
	if err != nil {
		return err
	}
	n, err := a.Store.CountImported(a.ctx, a.org)
	if err == nil {
		err = n.Removable()
	}
	return err
}

// readMakers reads the actor of the last change of each document.
func (a *abandoning) readMakers() error {
	if err := a.Ledger.SignChanges(a.ctx, a.Store); err != nil {
		return err
	}
	a.makers = make(map[string]string)
	for p := (storage.Page{Limit: 256}); ; {
		entries, next, err := a.Store.Entries(a.ctx, a.org, storage.ChangeEntry, p)
		if err != nil {
			return err
		}
		for _, e := range entries {
			c, err := ledger.ParseChange(e)
			if err != nil {
				return err
			}
			if _, newer := a.makers[c.Kind+"/"+c.ID]; !newer {
				a.makers[c.Kind+"/"+c.ID] = c.Actor
			}
		}
		if p.After = next; next == "" {
			return nil
		}
	}
}

// documents removes the documents of the import. It removes a policy with all its versions.
func (a *abandoning) documents() error {
	for _, c := range slices.Backward(carried) {
		if c.Kind == storage.CountsKind || c.Kind == storage.DetailsKind {
			continue
		}
		if err := a.collection(c, func(name string) (keep bool, err error) {
			if c.Kind == storage.RevisionKind {
				return !storage.IsImportedRevision(name), nil
			}
			actor, changed := a.makers[c.Name+"/"+name]
			if keep = changed && actor != Actor; keep {
				a.done.Kept = append(a.done.Kept, KeptDocument{c.Name, name, actor})
			}
			return keep, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// details removes the details of decisions whose rows are removed.
func (a *abandoning) details() error {
	return a.collection(&storage.AllDetails.Collection, func(decision string) (keep bool, err error) {
		_, err = a.Store.Record(a.ctx, a.org, decision)
		if errors.Is(err, storage.ErrNotFound) {
			return false, nil
		}
		return true, err
	})
}

// collection removes the documents of a collection. It keeps the names for which keep returns true.
func (a *abandoning) collection(c *storage.Collection, keep func(name string) (bool, error)) error {
	var all []storage.Document
	if err := a.Store.View(a.ctx, func(r storage.Reader) error {
		return eachOf(r, a.org, c, func(d storage.Document) error {
			d.Value = slices.Clone(d.Value)
			all = append(all, d)
			return nil
		})
	}); err != nil {
		return err
	}
	for len(all) > 0 {
		name, n, err := together(c, all)
		if err != nil {
			return err
		}
		same := all[:n]
		all = all[n:]
		kept, err := keep(name)
		if err != nil {
			return err
		}
		if kept {
			continue
		}
		if _, err := a.Store.Update(a.ctx, a.org, func(tx storage.Tx) error { return a.delete(tx, same) }); err != nil {
			return err
		}
		a.done.Documents += n
	}
	return nil
}

// together returns the name of the first document, and the number of documents at the beginning
// of all that have this name. These documents are removed in one write.
func together(c *storage.Collection, all []storage.Document) (first string, n int, err error) {
	for n := range all {
		_, name, _, err := c.Describe(all[n])
		switch {
		case err != nil:
			return "", 0, err
		case n == 0:
			first = name
		case name != first:
			return first, n, nil
		}
	}
	return first, len(all), nil
}

// delete deletes documents with one name and subtracts them from the counts.
func (a *abandoning) delete(tx storage.Tx, same []storage.Document) error {
	counts, uncounted := storage.AllCounts.Get(tx, a.org, "")
	if uncounted != nil {
		counts = new(storage.Counts)
	}
	before, policy := *counts, ""
	for _, d := range same {
		there, err := tx.Get(d.Kind, d.Org, d.ID)
		if err == nil && there.Revision != d.Revision {
			err = fmt.Errorf("%w: the %s %q was changed meanwhile: run it again", storage.ErrConflict,
				storage.CollectionOf(d.Kind).Name, d.ID)
		}
		if err == nil && revised(d.Kind) {
			err = storage.Retire(tx, d.Kind, d.Org, d.ID, true, time.Now())
		}
		if err == nil {
			err = tx.Delete(d.Kind, d.Org, d.ID)
		}
		if err == nil {
			policy, err = count(counts, d, -1, policy)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case *counts == before:
		return nil
	case uncounted != nil:
		return uncounted
	case *counts == storage.Counts{}:
		return tx.Delete(storage.CountsKind, a.org, "")
	}
	return storage.AllCounts.Put(tx, a.org, counts)
}

// rows announces the removal of the imported rows and removes them.
func (a *abandoning) rows() error {
	n, err := a.Store.CountImported(a.ctx, a.org)
	if err != nil {
		return err
	}
	a.done.Signed, err = a.Ledger.SignAbandonment(a.ctx, ledger.Abandonment{
		ExportID: a.found.ID, OrganizationID: a.org, Rows: int64(n.Rows), Removed: int64(n.Removed),
	})
	for removed := 0; err == nil; {
		var some int
		some, err = a.Store.RemoveImported(a.ctx, a.org, runRows)
		removed += some
		a.Progress.Tell("removed", removed, n.All())
		if some < runRows {
			break
		}
	}
	return err
}

// end removes the document that says that an import is unfinished.
func (a *abandoning) end() error {
	i := importer{Target: a.Target, ctx: a.ctx, org: a.org}
	return i.end()
}

// abandoned reports whether an import of org was abandoned before.
func abandoned(ctx context.Context, s storage.Store, org string) (bool, error) {
	entries, _, err := s.Entries(ctx, org, storage.AbandonEntry, storage.Page{Limit: 1})
	return len(entries) > 0, err
}

// mayRemain reports whether an import may begin although d exists. An abandoned import leaves
// counts, disabled agents and this store's revisions. An organization may be stopped before it arrives.
func mayRemain(d storage.Document) (bool, error) {
	switch d.Kind {
	case storage.CountsKind, storage.StopKind:
		return true, nil
	case storage.RevisionKind:
		return !storage.IsImportedRevision(d.ID), nil
	case storage.AgentKind:
		agent, err := storage.Agents.Parse(d)
		return err == nil && agent.Status == engine.AgentDisabled, err
	}
	return false, nil
}
