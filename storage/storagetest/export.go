package storagetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ/storage"
)

// Exported is a reader of a store, as far as an export needs it.
type Exported interface {
	Size(ctx context.Context, org string) (rows int, newest string, err error)
	RowsOf(ctx context.Context, org, after string, f func(*storage.Record) error) error
	TombstonesOf(ctx context.Context, org string, f func(*storage.Tombstone) error) error
	Tombstones(ctx context.Context, f func(*storage.Tombstone) error) error
}

// OneOrganization holds what r gives an export of org, whose rows are want, oldest
// first. So many of its rows were removed, and none of rival's.
func OneOrganization(t *testing.T, r Exported, org string, want []*storage.Record, removed int, rival string) {
	t.Helper()
	if n, newest, err := r.Size(t.Context(), org); n != len(want) || newest != want[len(want)-1].DecisionID || err != nil {
		t.Errorf("Size = %d, %s, %v, want %d", n, newest, err, len(want))
	}
	for i := range len(want) + 1 {
		after := ""
		if i > 0 {
			after = want[i-1].DecisionID
		}
		var got []*storage.Record
		if err := r.RowsOf(t.Context(), org, after, func(r *storage.Record) error { got = append(got, r); return nil }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[i:], got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("RowsOf after %q: -want +got\n%s", after, diff)
		}
	}
	var all, own []string
	add := func(to *[]string) func(*storage.Tombstone) error {
		return func(t *storage.Tombstone) error {
			if t.OrganizationID == org {
				*to = append(*to, t.IntentID+t.DecisionID)
			}
			return nil
		}
	}
	if err := errors.Join(r.TombstonesOf(t.Context(), org, add(&own)), r.Tombstones(t.Context(), add(&all))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(own, all) || len(own) != removed {
		t.Errorf("TombstonesOf = %q, want %q, which are %d", own, all, removed)
	}
	if err := r.TombstonesOf(t.Context(), rival, func(t *storage.Tombstone) error { return errors.New(t.DecisionID) }); err != nil {
		t.Errorf("TombstonesOf of one without any = %v", err)
	}
	if n, newest, err := r.Size(t.Context(), "nobody"); n != 0 || newest != "" || err != nil {
		t.Errorf("Size of nobody = %d, %q, %v", n, newest, err)
	}
	if err := r.RowsOf(t.Context(), org, "x", nil); err == nil {
		t.Error("RowsOf after what is no id = nil, want an error")
	}
}
