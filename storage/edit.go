package storage

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// Edits implements the contract of [Tx] for the writes of an update. A backend stores each
// [Edit] that its methods return.
type Edits struct {
	Org      string
	Revision uint64 // the revision of the update
	// Changes has one change for each written document. The backend tells watchers of these
	// changes.
	Changes []Change
}

// Edit is a document that an update has written or removed. The Document of a removed document
// is its content before the update.
type Edit struct {
	Collection *Collection
	Document   Document
	Removed    bool
	// Before and After are the document's keys before and after the update.
	Before, After []Key
}

// Put implements [Tx.Put]. r must return the earlier writes of the update.
func (e *Edits) Put(ctx context.Context, r Reader, d Document) (Edit, error) {
	c := CollectionOf(d.Kind)
	if c == nil || d.Org != e.Org {
		return Edit{}, fmt.Errorf("storing a document of the kind %q of %q in an update of %q", d.Kind, d.Org, e.Org)
	}
	d.Revision = e.Revision
	edit := Edit{Collection: c, Document: d}
	var id, alias string
	var err error
	if edit.After, id, alias, err = c.Describe(d); err != nil {
		return Edit{}, err
	}
	switch old, err := r.Get(d.Kind, d.Org, d.ID); {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return Edit{}, err
	case old.Org != d.Org:
		return Edit{}, ErrConflict
	default:
		if edit.Before, _, _, err = c.Describe(old); err != nil {
			return Edit{}, err
		}
	}
	e.changed(c, Change{
		Revision: e.Revision, Kind: d.Kind, Org: d.Org, ID: id, Alias: alias, Digest: sha256.Sum256(d.Value),
		Actor: Actor(ctx),
	})
	return edit, nil
}

// Delete implements [Tx.Delete].
func (e *Edits) Delete(ctx context.Context, r Reader, kind Kind, org, id string) (Edit, error) {
	d, err := r.Get(kind, org, id)
	if err == nil && d.Org != e.Org {
		err = ErrNotFound
	}
	if err != nil {
		return Edit{}, err
	}
	edit := Edit{Collection: CollectionOf(kind), Document: d, Removed: true}
	before, id, alias, err := edit.Collection.Describe(d)
	if err != nil {
		return Edit{}, err
	}
	edit.Before = before
	e.changed(edit.Collection,
		Change{Revision: e.Revision, Kind: kind, Org: d.Org, ID: id, Alias: alias, Actor: Actor(ctx)})
	return edit, nil
}

func (e *Edits) changed(c *Collection, change Change) {
	if c.Quiet {
		return
	}
	i := slices.IndexFunc(e.Changes, func(before Change) bool {
		return before.Kind == change.Kind && before.ID == change.ID
	})
	if i < 0 {
		e.Changes = append(e.Changes, change)
	} else {
		e.Changes[i] = change
	}
}
