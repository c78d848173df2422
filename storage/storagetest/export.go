package storagetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/storage"
)

// Exported is the part of a store's reader that an export needs.
type Exported interface {
	CountExpired(ctx context.Context, org string, before time.Time, most int) (storage.Expired, error)
	EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error
	EachTombstone(ctx context.Context, org string, f func(*storage.Tombstone) error) error
}

// OneOrganization checks that an export of org reads exactly the data of org from r. want has the
// rows of org, oldest first. removed is the number of org's removed rows. The organization rival
// must have no removed rows.
func OneOrganization(t *testing.T, r Exported, org string, want []*storage.Record, removed int, rival string) {
	t.Helper()
	if n, err := r.CountExpired(t.Context(), org, time.UnixMilli(1<<48), math.MaxInt); n.Records != len(want) || err != nil {
		t.Errorf("CountExpired = %+v, %v, want %d", n, err, len(want))
	}
	ids := []string{""}
	for _, r := range want {
		ids = append(ids, r.DecisionID)
	}
	ids = append(ids, "")
	for i, after := range ids[:len(want)+1] {
		for j := i + 1; j < len(ids); j++ {
			var got []*storage.Record
			if err := r.EachRow(t.Context(), org, after, ids[j], func(r *storage.Record) error { got = append(got, r); return nil }); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[i:min(j, len(want))], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("EachRow after %q up to %q: -want +got\n%s", after, ids[j], diff)
			}
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
	if err := errors.Join(r.EachTombstone(t.Context(), org, add(&own)), r.EachTombstone(t.Context(), "", add(&all))); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(own, all) || len(own) != removed {
		t.Errorf("EachTombstone = %q, want %q, which are %d", own, all, removed)
	}
	if err := r.EachTombstone(t.Context(), rival, func(t *storage.Tombstone) error { return errors.New(t.DecisionID) }); err != nil {
		t.Errorf("EachTombstone of one without any = %v", err)
	}
	for _, bounds := range [][2]string{{"x", ""}, {"", "x"}} {
		if err := r.EachRow(t.Context(), org, bounds[0], bounds[1], nil); err == nil {
			t.Errorf("EachRow within %q, which is no id, = nil, want an error", bounds)
		}
	}
}
