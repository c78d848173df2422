package registry_test

import (
	"errors"
	"strings"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
)

var detailsTests = []test{
	{"Details are of one organization, and gone once they are erased", func(w *world) {
		d := storage.NewDetails("decision", map[string]string{"to": "a", "": "b"})
		w.Must("PutDetails", w.PutDetails(w.ctx, "org", d))
		got, err := w.Details(w.ctx, "org", "decision")
		if diff := cmp.Diff(d, got); diff != "" || err != nil || got.Digest() != d.Digest() {
			w.Errorf("Details = %v, -want +got\n%s", err, diff)
		}
		wantNone := func(org string) {
			w.Helper()
			if _, err := w.Details(w.ctx, org, "decision"); !errors.Is(err, storage.ErrNotFound) {
				w.Errorf("Details of %q = %v, want %v", org, err, storage.ErrNotFound)
			}
		}
		wantNone("other")
		w.Must("EraseDetails", w.EraseDetails(w.ctx, "other", "decision"))
		if _, err := w.Details(w.ctx, "org", "decision"); err != nil {
			w.Errorf("Details after another organization erased its own = %v", err)
		}
		for range 2 {
			w.Must("EraseDetails", w.EraseDetails(w.ctx, "org", "decision"))
			wantNone("org")
		}
	}},
	{"the digest of details tells nothing of equal values", func(w *world) {
		values := map[string]string{"to": "a"}
		a, b := storage.NewDetails("decision", values), storage.NewDetails("decision", values)
		if a.Digest() == b.Digest() || !strings.HasPrefix(a.Digest(), "sha256:") {
			w.Errorf("digests %s and %s, want different ones", a.Digest(), b.Digest())
		}
		salted := *b
		if salted.Salt = a.Salt; a.Digest() != salted.Digest() {
			w.Error("equal details have different digests")
		}
		salted.Values = map[string]string{"to": "b"}
		if a.Digest() == salted.Digest() {
			w.Error("different details have one digest")
		}
	}},
}
