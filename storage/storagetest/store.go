package storagetest

import (
	"context"
	"fmt"

	"writ.example/writ/storage"
)

var storeTests = []test{
	{"a cursor that the list did not return must give ErrBadCursor", func(w *world) {
		w.commit(w.record("org"), w.record("org"), w.record("org"))
		list := func(after string, limit int) (int, string, error) {
			items, next, err := w.ListRecords(w.ctx, "org", storage.Filter{}, storage.Page{Limit: limit, After: after})
			return len(items), next, err
		}
		n, next, err := list("", 1)
		if n != 1 || err != nil || next == "" {
			w.Fatalf("ListRecords = %d items, %q, %v; want 1 and a cursor", n, next, err)
		}
		for _, c := range []byte(next) {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				w.Errorf("ListRecords = cursor %q, want only letters, digits, - and _", next)
			}
		}
		if n, _, err := list(next, 10); n != 2 || err != nil {
			w.Errorf("ListRecords after its own cursor = %d items, %v; want 2, nil", n, err)
		}
		for _, bad := range []string{"x", "***", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", next + "="} {
			_, _, err := list(bad, 10)
			w.WantErr("ListRecords after "+bad, err, storage.ErrBadCursor)
		}
		for _, limit := range []int{0, -1} {
			if n, _, err := list("", limit); err == nil {
				w.Errorf("ListRecords with limit %d = %d items, nil; want an error", limit, n)
			}
		}
	}},
	{"Healthy returns nil while the store can commit", func(w *world) {
		w.Must("Healthy", w.Healthy(w.ctx))
		w.commit(w.record("org"))
		w.Must("Healthy", w.Healthy(w.ctx))
	}},
	{"a write under a context that has ended must fail with nothing stored", func(w *world) {
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		r := w.record("org")
		_, err := w.Append(ctx, storage.Batch{Records: []*storage.Record{r}}, w.writer.Seal)
		w.WantErr("Append", err, context.Canceled)
		w.wantEmpty("org", r)
	}},
}

// wantEmpty reports an error if the store has any data of org. r is a record of another
// organization.
func (w *world) wantEmpty(org string, r *storage.Record) {
	w.Helper()
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	_, err := w.Record(w.ctx, org, r.DecisionID)
	add(err)
	theirs := *r
	theirs.OrganizationID = org
	if earlier := w.settle(&theirs, storage.Settlement{Outcome: "failed", RecordedAt: noon}); earlier == nil || !earlier.Removed() {
		w.Errorf("Append of a settlement in %q = %v, want one that is Removed", org, earlier)
	}
	for i, err := range errs {
		w.WantErr(fmt.Sprintf("access %d to a document of another", i), err, storage.ErrNotFound)
	}
	n := len(w.history(org, storage.Filter{}, 10)) + len(w.history(org, storage.Filter{Decision: r.Decision}, 10))
	if n > 0 {
		w.Errorf("the lists of %q hold %d items, want 0", org, n)
	}
	w.wantMeter(org, storage.MonthOf(noon), 0)
}
