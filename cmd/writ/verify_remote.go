package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
)

// remote is the history that a server shows to one organization.
type remote struct {
	client client
	chains map[[16]byte][]receipt.SignedHead // as Chains was told, the newest first
}

// pageSize is the greatest that lists give.
const pageSize = "500"

// pages calls f with the items of each page of a list.
func (r *remote) pages(ctx context.Context, path string, f func([]jsontext.Value) error) error {
	for cursor := ""; ; {
		q := url.Values{"limit": {pageSize}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page struct {
			Data       []jsontext.Value `json:"data"`
			NextCursor *string          `json:"next_cursor"`
		}
		if err := r.client.fetch(ctx, http.MethodGet, path+"?"+q.Encode(), nil, http.StatusOK, &page); err != nil {
			return err
		}
		if err := f(page.Data); err != nil {
			return err
		}
		switch next := page.NextCursor; {
		case next == nil:
			return nil
		case *next == cursor:
			return fmt.Errorf("the server's list of %s does not end", path)
		default:
			cursor = *next
		}
	}
}

// Chains implements ledger.History. A server lists the newest head of a chain first.
func (r *remote) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	r.chains = make(map[[16]byte][]receipt.SignedHead)
	err := r.pages(ctx, "/v1/ledger/heads", func(items []jsontext.Value) error {
		for _, item := range items {
			h, err := receipt.ParseHead(item)
			if err != nil {
				return err
			}
			heads := r.chains[h.Chain]
			if n := len(heads); n > 0 && h.Seq >= heads[n-1].Seq {
				return fmt.Errorf("the server lists head %d after head %d", h.Seq, heads[n-1].Seq)
			}
			r.chains[h.Chain] = append(heads, h)
		}
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
	return r.pages(ctx, "/v1/changes", func(items []jsontext.Value) error {
		for _, item := range items {
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
			if err := f(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Tombstones implements ledger.History.
func (r *remote) Tombstones(context.Context, func(*storage.Tombstone) error) error { return nil }

// Parts implements ledger.History.
func (r *remote) Parts(context.Context) ([]storage.Part, error) {
	return []storage.Part{func(ctx context.Context, f func(*storage.Record) error) error {
		last := ""
		return r.pages(ctx, "/v1/authorizations", func(items []jsontext.Value) error {
			for _, item := range items {
				row := new(storage.Record)
				if err := json.Unmarshal(item, row); err != nil {
					return fmt.Errorf("decoding a row: %w", err)
				}
				if last != "" && row.DecisionID >= last {
					return fmt.Errorf("the server lists decision %.36q after %s", row.DecisionID, last)
				}
				last = row.DecisionID
				if err := f(row); err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

// Documents implements ledger.History: it is not asked of a server.
func (r *remote) Documents(context.Context, func(storage.Change) error) error { return nil }

// Waiting implements ledger.History: it is not asked of a server.
func (r *remote) Waiting(context.Context, func(storage.Change) error) error { return nil }

// Census implements ledger.History.
func (r *remote) Census(context.Context) (storage.Census, error) { return storage.Census{}, nil }
