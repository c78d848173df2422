package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"writ/storage"
)

// update is a storage.Tx. Store.writes is held.
type update struct {
	documents
	b        *batch
	org      string
	revision uint64
	changes  []storage.Change
}

// Update implements storage.Documents. It calls f once.
func (s *Store) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil {
		return 0, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	if err := s.health.writable(); err != nil {
		return 0, err
	}
	b := &batch{b: s.db.NewIndexedBatch()}
	u := update{
		documents: documents{ctx: ctx, s: s, src: b.b}, b: b, org: org, revision: s.change + 1,
	}
	defer u.close()
	if err := f(&u); err != nil {
		return 0, err
	}
	u.close()
	if b.b.Empty() && b.err == nil {
		return 0, nil
	}
	for i := range u.changes {
		b.document(changeKey(u.revision, i), &u.changes[i])
	}
	if err := s.finish(b); err != nil {
		return 0, err
	}
	for _, c := range u.changes {
		s.watchers.Tell(c)
	}
	return u.revision, nil
}

// Put implements storage.Tx.
func (u *update) Put(d storage.Document) error {
	c, err := collection(d.Kind, d.Org)
	if err != nil {
		return err
	}
	if d.Org != u.org {
		return fmt.Errorf("storing a %s of %q in an update of %q", c.Name, d.Org, u.org)
	}
	old, err := u.Get(d.Kind, d.Org, d.ID)
	switch {
	case err == nil && old.Org != d.Org:
		return storage.ErrConflict
	case err == nil:
		err = u.unindex(c, old)
	case errors.Is(err, storage.ErrNotFound):
		err = nil
	}
	if err != nil {
		return err
	}
	d.Revision = u.revision
	id, alias, err := u.b.putDocument(c, d)
	if err != nil {
		return err
	}
	u.changed(c, storage.Change{
		Revision: u.revision, Kind: d.Kind, Org: d.Org, ID: id, Alias: alias,
		Digest: sha256.Sum256(d.Value), Actor: storage.Actor(u.ctx),
	})
	return u.b.err
}

// Delete implements storage.Tx.
func (u *update) Delete(kind storage.Kind, org, id string) error {
	d, err := u.Get(kind, org, id)
	if err == nil && d.Org != u.org {
		err = storage.ErrNotFound
	}
	if err != nil {
		return err
	}
	c := storage.CollectionOf(kind)
	_, name, alias, err := c.Describe(d)
	if err == nil {
		err = u.unindex(c, d)
	}
	if err != nil {
		return err
	}
	u.b.delete(documentKey(c, d.Org, id))
	u.changed(c, storage.Change{
		Revision: u.revision, Kind: kind, Org: d.Org, ID: name, Alias: alias, Actor: storage.Actor(u.ctx),
	})
	return u.b.err
}

// changed records a change in the place of an earlier one of the same document.
func (u *update) changed(c *storage.Collection, change storage.Change) {
	u.close() // later reads see the change
	if c.Quiet {
		return
	}
	for i, before := range u.changes {
		if before.Kind == change.Kind && before.ID == change.ID {
			u.changes[i] = change
			return
		}
	}
	u.changes = append(u.changes, change)
}

// unindex deletes the index entries of d.
func (u *update) unindex(c *storage.Collection, d storage.Document) error {
	keys, _, _, err := c.Describe(d)
	for _, k := range keys {
		u.b.delete(append(indexOf(d.Kind, d.Org, k.Index), k.Value...).text(d.ID))
	}
	return err
}

// putDocument puts d and its index entries into b.
func (b *batch) putDocument(c *storage.Collection, d storage.Document) (id, alias string, err error) {
	keys, id, alias, err := c.Describe(d)
	if err != nil {
		return "", "", err
	}
	b.set(documentKey(c, d.Org, d.ID), documentRow(c, d))
	for _, k := range keys {
		b.set(append(indexOf(d.Kind, d.Org, k.Index), k.Value...).text(d.ID), []byte(d.ID))
	}
	return id, alias, b.err
}
