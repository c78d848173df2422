package storagetest

import (
	"fmt"

	"writ.example/writ/storage"
)

var tenancyTests = []test{
	{"another organization's document behaves exactly as one that does not exist", func(w *world) {
		r := w.fill("org")
		for _, other := range append([]string{"or", "orgg", "org\x00", "Org"}, Hostile...) {
			w.wantEmpty(other, r)
		}
		w.check()
	}},
	{"no organization id reaches into another's range", func(w *world) {
		records := make(map[string]*storage.Record)
		for i, org := range Hostile {
			for _, later := range Hostile[i:] {
				if i%5 == 0 {
					w.wantEmpty(later, w.record(later))
				}
			}
			records[org] = w.fill(org)
		}
		for _, org := range Hostile {
			w.wantFilled(org, records[org])
		}
		w.check()
	}},
	{"the same ids in two organizations are two documents", func(w *world) {
		a := w.fill("a")
		b := w.record("b", func(r *storage.Record) { r.IntentID = a.IntentID })
		w.commit(b)
		w.check()
	}},
}

// fill stores a record of org.
func (w *world) fill(org string) *storage.Record {
	w.Helper()
	r := w.record(org)
	w.commit(r)
	return r
}

// wantFilled reports an error unless org has exactly the record r that fill stored.
func (w *world) wantFilled(org string, r *storage.Record) {
	w.Helper()
	w.WantSame(fmt.Sprintf("ListRecords of %q", org), w.history(org, storage.Filter{}, 10), []*storage.Record{r})
}
