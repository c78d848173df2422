package registry

import (
	"context"
	"errors"

	"writ/storage"
)

// PutDetails stores the details of a decision. It must return before the decision is
// committed: a row never has the digest of what was not kept.
func (r *Registry) PutDetails(ctx context.Context, org string, d *storage.Details) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		_, err := storage.AllDetails.Put(tx, org, d)
		return err
	})
}

// Details returns the details of a decision, or storage.ErrNotFound where it has
// none or they were erased.
func (r *Registry) Details(ctx context.Context, org, decisionID string) (*storage.Details, error) {
	return read(ctx, r, func(tx storage.Reader) (*storage.Details, error) {
		return storage.AllDetails.Get(tx, org, decisionID)
	})
}

// EraseDetails removes the details of a decision with their salt, if there are any.
func (r *Registry) EraseDetails(ctx context.Context, org, decisionID string) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		err := tx.Delete(storage.DetailsKind, org, decisionID)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		return err
	})
}
