package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
	"writ/workspace"
)

// remote is the history that a server shows to one organization.
type remote struct {
	client client
	chains map[[16]byte][]receipt.SignedHead // as Chains was told, the newest first
}

func (r *remote) each(ctx context.Context, path string, f func(item jsontext.Value) error) error {
	return workspace.Pages(ctx, r.client.request, path, func(page workspace.Page[jsontext.Value]) error {
		for _, item := range page.Data {
			if err := f(item); err != nil {
				return err
			}
		}
		return nil
	})
}

// Chains implements ledger.History. A server lists the newest head of a chain first.
func (r *remote) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	r.chains = make(map[[16]byte][]receipt.SignedHead)
	err := r.each(ctx, "/v1/ledger/heads", func(item jsontext.Value) error {
		h, err := receipt.ParseHead(item)
		if err != nil {
			return err
		}
		heads := r.chains[h.Chain]
		if n := len(heads); n > 0 && h.Seq >= heads[n-1].Seq {
			return fmt.Errorf("the server lists head %d after head %d", h.Seq, heads[n-1].Seq)
		}
		r.chains[h.Chain] = append(heads, h)
		return nil
	})
	if err != nil {
		return err
	}
	for id, heads := range r.chains {
		if err := f(receipt.Chain{ID: id}.Next(heads[0].Head)); err != nil {
			return err
		}
	}
	return nil
}

// Heads implements ledger.History.
func (r *remote) Heads(_ context.Context, chain [16]byte, _ uint64, f func(receipt.SignedHead) error) error {
	for _, h := range slices.Backward(r.chains[chain]) {
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// Entries implements ledger.History. A server shows the changes.
func (r *remote) Entries(ctx context.Context, f func(*storage.Entry) error) error {
	listed := make(map[string]bool)
	return r.each(ctx, "/v1/changes", func(item jsontext.Value) error {
		var c struct {
			ledger.Change
			Receipt receipt.Inclusion `json:"receipt"`
		}
		if err := json.Unmarshal(item, &c); err != nil {
			return fmt.Errorf("decoding a change: %w", err)
		}
		e := c.Entry()
		if e.Inclusion = c.Receipt; listed[e.Key] {
			return fmt.Errorf("the server lists change %s twice", e.Key)
		}
		listed[e.Key] = true
		return f(e)
	})
}

// Tombstones implements ledger.History.
func (r *remote) Tombstones(context.Context, func(*storage.Tombstone) error) error { return nil }

// Parts implements ledger.History.
func (r *remote) Parts(context.Context) ([]storage.Part, error) {
	return []storage.Part{func(ctx context.Context, f func(*storage.Record) error) error {
		last := ""
		return r.each(ctx, "/v1/authorizations", func(item jsontext.Value) error {
			row := new(storage.Record)
			if err := json.Unmarshal(item, row); err != nil {
				return fmt.Errorf("decoding a row: %w", err)
			}
			if last != "" && row.DecisionID >= last {
				return fmt.Errorf("the server lists decision %.36q after %s", row.DecisionID, last)
			}
			last = row.DecisionID
			return f(row)
		})
	}}, nil
}

// Documents implements ledger.History: it is not asked of a server.
func (r *remote) Documents(context.Context, func(storage.Change) error) error { return nil }

// Waiting implements ledger.History: it is not asked of a server.
func (r *remote) Waiting(context.Context, func(storage.Change) error) error { return nil }

// Census implements ledger.History.
func (r *remote) Census(context.Context) (storage.Census, error) { return storage.Census{}, nil }
