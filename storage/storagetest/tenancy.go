package storagetest

import (
	"fmt"

	"writ/storage"
)

// hostile are organization ids that would reach into one another's documents if
// keys were made carelessly.
var hostile = []string{
	"a", "ab", "a\x00", "a\x00\x01", "a/", "a/b", "a:b", "a|b", "", "\x00", "\x00\x01a", "\x00\x00", "ÿ", "ÿÿ",
	"\U0010ffff", "a\x01", "A", " a", "a ", "á", "a\u0301", "p", "t", "%", "*", "..", "$ne", "org.id",
}

var tenancyTests = []test{
	{"another organization's document behaves exactly as one that does not exist", func(w *world) {
		r := w.fill("org")
		for _, other := range append([]string{"or", "orgg", "org\x00", "Org"}, hostile...) {
			w.wantEmpty(other, r)
		}
		w.check()
	}},
	{"no organization id reaches into another's range", func(w *world) {
		records := make(map[string]*storage.Record)
		for i, org := range hostile {
			for _, later := range hostile[i:] {
				if i%5 == 0 {
					w.wantEmpty(later, w.record(later))
				}
			}
			records[org] = w.fill(org)
		}
		for _, org := range hostile {
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

// wantFilled reports that org has anything but what fill stored.
func (w *world) wantFilled(org string, r *storage.Record) {
	w.Helper()
	w.wantSame(fmt.Sprintf("ListRecords of %q", org), w.history(org, storage.Filter{}, 10), []*storage.Record{r})
}
