package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// Remote is an organization's history as a server shows it. It implements the methods of
// [ledger.History] that [ledger.Prove] calls for a partial history.
type Remote struct {
	// Each calls f with each item of the list at path on the server, newest first.
	Each func(ctx context.Context, path string, f func(jsontext.Value) error) error
	// From are heads of different chains. Heads before them are not read.
	From []receipt.SignedHead

	ledger.History // nil, because Prove does not call further methods

	chains map[[16]byte][]receipt.SignedHead // the heads that Chains received from the server, newest first
}

// Chains implements ledger.History.
func (r *Remote) Chains(ctx context.Context, f func(receipt.Chain) error) error {
	r.chains = make(map[[16]byte][]receipt.SignedHead)
	err := r.Each(ctx, "/v1/ledger/heads"+r.from(), func(item jsontext.Value) error {
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

// maxFrom is the largest number of heads that a server wants in the parameter from.
const maxFrom = 64

// from returns the query of the list of heads.
func (r *Remote) from() string {
	var heads []string
	for _, h := range r.From[:min(len(r.From), maxFrom)] {
		heads = append(heads, fmt.Sprintf("%x.%d", h.Chain, h.Seq))
	}
	if heads == nil {
		return ""
	}
	return "?from=" + strings.Join(heads, ",")
}

// Heads implements ledger.History.
func (r *Remote) Heads(_ context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error {
	for _, h := range slices.Backward(r.chains[chain]) {
		if h.Seq < from {
			continue
		}
		if err := f(h); err != nil {
			return err
		}
	}
	return nil
}

// EachEntry implements ledger.History. A server shows only entries of changes.
func (r *Remote) EachEntry(ctx context.Context, f func(*storage.Entry) error) error {
	listed := make(map[string]bool)
	return r.Each(ctx, "/v1/changes", func(item jsontext.Value) error {
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

// EachTombstone implements ledger.History. A server shows no tombstones.
func (r *Remote) EachTombstone(context.Context, string, func(*storage.Tombstone) error) error {
	return nil
}

// Organizations implements ledger.History. It calls f once with an empty name, because the server's
// credential belongs to one organization.
func (r *Remote) Organizations(_ context.Context, f func(string) error) error { return f("") }

// errEnough ends a list before its end.
var errEnough = errors.New("enough")

// EachRow implements ledger.History. It calls f with the newest row first, and ignores upTo.
func (r *Remote) EachRow(ctx context.Context, _, after, _ string, f func(*storage.Record) error) error {
	last := ""
	err := r.Each(ctx, "/v1/authorizations", func(item jsontext.Value) error {
		row := new(storage.Record)
		if err := json.Unmarshal(item, row); err != nil {
			return fmt.Errorf("decoding a row: %w", err)
		}
		if last != "" && row.DecisionID >= last {
			return fmt.Errorf("the server lists decision %.36q after %s", row.DecisionID, last)
		}
		if last = row.DecisionID; last <= after {
			return errEnough
		}
		return f(row)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
