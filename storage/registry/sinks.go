package registry

import (
	"context"
	"encoding/hex"
	"errors"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// BeginSink stores that the sink gets what follows tips. If the sink is already stored, BeginSink
// changes nothing.
func (r *Registry) BeginSink(ctx context.Context, name string, tips []receipt.Chain) error {
	return r.update(ctx, "", func(tx storage.Tx) error {
		_, err := storage.Sinks.Get(tx, "", name)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		s := storage.Sink{Name: name, Confirmed: make(map[string]uint64)}
		for _, tip := range tips {
			s.Confirmed[hex.EncodeToString(tip.ID[:])] = tip.Seq
		}
		return storage.Sinks.Put(tx, "", &s)
	})
}

// Confirmed returns the sequence of the last head of a chain whose rows the sink has confirmed.
func (r *Registry) Confirmed(ctx context.Context, name string, chain [16]byte) (uint64, error) {
	s, err := get(ctx, r, storage.Sinks, "", name)
	if err != nil {
		return 0, err
	}
	return s.Confirmed[hex.EncodeToString(chain[:])], nil
}

// Confirm stores that the sink has confirmed the rows of a chain up to a head. Of two handles that send
// the same chain, the slower one may move the position back. Then rows are sent again.
func (r *Registry) Confirm(ctx context.Context, name string, chain [16]byte, seq uint64) error {
	return r.update(ctx, "", func(tx storage.Tx) error {
		s, err := storage.Sinks.Get(tx, "", name)
		if err != nil {
			return err
		}
		if s.Confirmed == nil {
			s.Confirmed = make(map[string]uint64)
		}
		s.Confirmed[hex.EncodeToString(chain[:])] = seq
		return storage.Sinks.Put(tx, "", s)
	})
}
