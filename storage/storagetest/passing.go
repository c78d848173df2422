package storagetest

import (
	"errors"
	"time"

	"writ.example/writ/storage"
)

// rowsOf returns what Rows passes for a chain. If it is the store's chain, rowsOf waits until its last
// head is durable.
func (w *world) rowsOf(q storage.RowQuery) (all []storage.HeadRows) {
	w.Helper()
	tip := w.tip()
	d := docs{Checks: w.Checks}
	d.wait("durable heads", func() bool {
		all = nil
		w.Must("Rows", w.Rows(w.ctx, q, func(rows storage.HeadRows) error {
			all = append(all, rows)
			return nil
		}))
		return q.Chain != tip.ID || q.From > tip.Seq || len(all) > 0 && all[len(all)-1].Seq == tip.Seq
	})
	return all
}

// stored returns what Record returns for each of records.
func (w *world) stored(records ...*storage.Record) (all []*storage.Record) {
	w.Helper()
	for _, r := range records {
		got, err := w.Record(w.ctx, r.OrganizationID, r.DecisionID)
		w.Must("Record", err)
		all = append(all, got)
	}
	return all
}

var passingTests = []test{
	{"Rows passes the records of each head in the order of its leaves, as Record returns them", func(w *world) {
		a, b, c, d := w.record("org"), w.record("other"), w.record("org"), w.record("org")
		w.commit(a, b, c)
		w.settle(b, storage.Settlement{Outcome: "executed", RecordedAt: noon})
		w.commit(d)
		chain := w.tip().ID
		want := []storage.HeadRows{
			{Seq: 1, Count: 3, Records: w.stored(a, b, c)}, {Seq: 2}, {Seq: 3, Count: 1, Records: w.stored(d)},
		}
		w.WantSame("Rows", w.rowsOf(storage.RowQuery{Chain: chain}), want)
		w.WantSame("Rows from 3", w.rowsOf(storage.RowQuery{Chain: chain, From: 3}), want[2:])
		w.WantSame("Rows after the tip", w.rowsOf(storage.RowQuery{Chain: chain, From: 4}), want[3:])
		w.WantSame("Rows of no chain", w.rowsOf(storage.RowQuery{Chain: [16]byte{1, 2}}), want[3:])
		of := []storage.HeadRows{{Seq: 1, Count: 2, Records: w.stored(a, c)}, {Seq: 2}, want[2]}
		w.WantSame("Rows of org", w.rowsOf(storage.RowQuery{Chain: chain, Org: "org"}), of)
		of = []storage.HeadRows{{Seq: 1, Count: 1}, {Seq: 2}, {Seq: 3}}
		w.WantSame("bare Rows of other", w.rowsOf(storage.RowQuery{Chain: chain, Org: "other", Bare: true}), of)
		bare := []storage.HeadRows{{Seq: 1, Count: 3}, {Seq: 2}, {Seq: 3, Count: 1}}
		w.WantSame("bare Rows", w.rowsOf(storage.RowQuery{Chain: chain, Bare: true}), bare)
	}},
	{"Rows counts the records that RemoveRecords has removed, and lacks them", func(w *world) {
		all := w.hourly("org", 3)
		w.remove("org", noon.Add(90*time.Minute), 100, 2)
		got := w.rowsOf(storage.RowQuery{Chain: w.tip().ID})
		w.WantSame("Rows", got, []storage.HeadRows{{Seq: 1, Count: 3, Records: w.stored(all[2])}})
	}},
	{"Rows returns the error of its function, and passes nothing more", func(w *world) {
		w.commit(w.record("org"))
		w.commit(w.record("org"))
		w.rowsOf(storage.RowQuery{Chain: w.tip().ID})
		enough, calls := errors.New("enough"), 0
		err := w.Rows(w.ctx, storage.RowQuery{Chain: w.tip().ID}, func(storage.HeadRows) error {
			calls++
			return enough
		})
		w.WantErr("Rows", err, enough)
		w.WantSame("calls", calls, 1)
	}},
	{"Followed has the chain that the handle writes", func(w *world) {
		for range 2 {
			got, err := w.Followed(w.ctx)
			w.Must("Followed", err)
			if len(got) == 0 || got[0] != w.tip() {
				w.Errorf("Followed = %+v, want first %+v", got, w.tip())
			}
			w.commit(w.record("org"))
		}
	}},
}
