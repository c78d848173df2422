package stream

import (
	"testing"

	"writ.example/writ/storage"
)

// TestHeadRows_AreSharedByViewersThatSelectAlike checks that viewers that select alike have the same rows, and
// are asked once. A viewer whose rows may be others is asked itself.
func TestHeadRows_AreSharedByViewersThatSelectAlike(t *testing.T) {
	asked := 0
	viewer := func(alike, org string) *Viewer {
		v := new(Viewer)
		v.Select(alike, func(r *storage.Record) bool { asked++; return r.OrganizationID == org })
		return v
	}
	head := newHeadRows(&storage.HeadRows{Records: []*storage.Record{{OrganizationID: "a"}, {OrganizationID: "b"}}})
	first := head.selected(viewer("x", "a"))
	again := head.selected(viewer("x", "a"))
	if len(first) != 1 || len(again) != 1 || first[0] != again[0] || asked != 2 {
		t.Errorf("viewers that select alike have %d and %d rows, after %d questions; want the same one, after 2", len(first), len(again), asked)
	}
	for _, org := range []string{"a", "b"} {
		if own := head.selected(viewer("", org)); len(own) != 1 || own[0].OrganizationID != org {
			t.Errorf("a viewer of %q alone has %d rows, want its own", org, len(own))
		}
	}
	one, err := first[0].JSON()
	two, err2 := again[0].JSON()
	if err != nil || err2 != nil || &one[0] != &two[0] {
		t.Errorf("a row is encoded twice, %v, %v", err, err2)
	}
}
