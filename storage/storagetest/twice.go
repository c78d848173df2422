package storagetest

import (
	"context"
	"errors"

	"writ.example/writ/storage"
)

// Twice calls the function of every update twice, and drops the writes of the first call.
type Twice struct{ storage.Documents }

var errAgain = errors.New("run it again")

// Update implements storage.Documents.
func (t Twice) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	_, err := t.Documents.Update(ctx, org, func(tx storage.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return errAgain
	})
	if !errors.Is(err, errAgain) {
		return 0, err
	}
	return t.Documents.Update(ctx, org, f)
}
