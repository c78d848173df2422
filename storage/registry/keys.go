package registry

import (
	"context"
	"errors"
	"fmt"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// PublishKeys adds public keys that verify receipts of this store. A signer must publish its key
// before it signs. A key is never replaced.
func (r *Registry) PublishKeys(ctx context.Context, keys receipt.Keys) error {
	return r.update(ctx, "", func(tx storage.Tx) error {
		for _, id := range keys.IDs() {
			if _, err := storage.PublicKeys.Get(tx, "", id); !errors.Is(err, storage.ErrNotFound) {
				if err != nil {
					return err
				}
				continue
			}
			if err := storage.PublicKeys.Put(tx, "",
				&storage.PublicKey{ID: id, JWKS: string(keys.Only(id).JWKS())}); err != nil {
				return err
			}
		}
		return nil
	})
}

// PublicKeys returns all published keys.
func (r *Registry) PublicKeys(ctx context.Context) (keys receipt.Keys, err error) {
	stored, err := read(ctx, r, func(tx storage.Reader) ([]*storage.PublicKey, error) {
		return every(tx, storage.PublicKeys, storage.Query{})
	})
	if err != nil {
		return receipt.Keys{}, err
	}
	for _, k := range stored {
		one, err := receipt.ParseKeys([]byte(k.JWKS))
		if err != nil {
			return receipt.Keys{}, fmt.Errorf("the stored public key %q: %w", k.ID, err)
		}
		keys = keys.With(one)
	}
	return keys, nil
}

// WithdrawKey removes a public key. No row may need it.
func (r *Registry) WithdrawKey(ctx context.Context, id string) error {
	return r.update(ctx, "", func(tx storage.Tx) error {
		if err := tx.Delete(storage.PublicKeyKind, "", id); !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		return nil
	})
}
