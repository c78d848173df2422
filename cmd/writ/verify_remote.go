package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/authoring/workspace"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
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

// EachEntry implements ledger.History. A server shows the changes.
func (r *remote) EachEntry(ctx context.Context, f func(*storage.Entry) error) error {
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

// EachTombstone implements ledger.History.
func (r *remote) EachTombstone(context.Context, string, func(*storage.Tombstone) error) error {
	return nil
}

// Organizations implements ledger.History: the key is of one.
func (r *remote) Organizations(_ context.Context, f func(string) error) error { return f("") }

// EachRow implements ledger.History. A server lists the newest row first.
func (r *remote) EachRow(ctx context.Context, _, _, _ string, f func(*storage.Record) error) error {
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
}

// View, Changes and CheckIndex implement ledger.History: they are not asked of a server.

func (r *remote) View(context.Context, func(storage.Reader) error) error { return nil }

func (r *remote) Changes(context.Context, uint64, int) ([]storage.Change, error) { return nil, nil }

func (r *remote) CheckIndex(context.Context, storage.IndexCheck) error { return nil }
