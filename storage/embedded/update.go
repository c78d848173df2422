package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"writ.example/writ/storage"
)

// update is a storage.Tx. Store.writes is held while the update is used.
type update struct {
	documents
	b     *batch
	edits storage.Edits
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
		documents: documents{ctx: ctx, s: s, src: b.b}, b: b,
		edits: storage.Edits{Org: org, Revision: s.change + 1},
	}
	if err := f(&u); err != nil {
		return 0, err
	}
	if b.b.Empty() && b.err == nil {
		return 0, nil
	}
	for i := range u.edits.Changes {
		v, err := json.Marshal(&u.edits.Changes[i], json.Deterministic(true))
		if err != nil {
			return 0, fmt.Errorf("encoding a change: %w", err)
		}
		b.set(changeKey(u.edits.Revision, i), v)
	}
	if err := s.finish(b); err != nil {
		return 0, err
	}
	for _, c := range u.edits.Changes {
		s.watchers.Tell(c)
	}
	return u.edits.Revision, nil
}

// Put implements storage.Tx.
func (u *update) Put(d storage.Document) error { return u.write(u.edits.Put(u.ctx, u, d)) }

// Delete implements storage.Tx.
func (u *update) Delete(kind storage.Kind, org, id string) error {
	return u.write(u.edits.Delete(u.ctx, u, kind, org, id))
}

func (u *update) write(e storage.Edit, err error) error {
	if err != nil {
		return err
	}
	u.b.edit(e)
	return u.b.err
}

// edit writes a document and its index entries.
func (b *batch) edit(e storage.Edit) {
	d := e.Document
	for _, k := range e.Before {
		b.delete(append(indexOf(d.Kind, d.Org, k.Index), k.Value...).text(d.ID))
	}
	key := documentKey(e.Collection, d.Org, d.ID)
	if e.Removed {
		b.delete(key)
		return
	}
	b.set(key, documentRow(e.Collection, d))
	for _, k := range e.After {
		b.set(append(indexOf(d.Kind, d.Org, k.Index), k.Value...).text(d.ID), []byte(d.ID))
	}
}
