package storagetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// openElsewhere opens the log of another store.
func openElsewhere() *LogHandle {
	return &LogHandle{m: NewMemoryLog(), end: receipt.Chain{ID: [16]byte{0xfe, 0xed}}}
}

// elsewhere returns n records that another store could have decided for org, one second apart.
// Every third record is settled.
func (w *world) elsewhere(org string, n int) []*storage.Record {
	w.Helper()
	log := openElsewhere()
	rows := make([]*storage.Record, n)
	for i := range rows {
		rows[i] = w.record(org)
	}
	_, err := w.writer.Commit(w.ctx, log, rows...)
	w.Must("Commit elsewhere", err)
	for i := 0; i < n; i += 3 {
		_, err := w.writer.Settle(w.ctx, log, rows[i], storage.Settlement{Outcome: storage.Executed, ExternalRef: "tx", RecordedAt: noon.Add(time.Hour)})
		w.Must("Settle elsewhere", err)
	}
	return rows
}

// buried returns tombstones of records, as retention would leave in place of the records.
func (c Checks) buried(records ...*storage.Record) (left []*storage.Tombstone) {
	c.Helper()
	for _, r := range records {
		leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
		c.Must("Leaf", err)
		left = append(left, &storage.Tombstone{
			OrganizationID: r.OrganizationID, IntentID: r.IntentID, ApprovalID: r.ApprovalID, DecisionID: r.DecisionID,
			Leaves: []receipt.Leaf{leaf}, Imported: true,
		})
	}
	return left
}

func (w *world) imports(rows []*storage.Record, removed []*storage.Tombstone) {
	w.Helper()
	w.Must("Import", w.Import(w.ctx, "org", rows, removed))
	for _, r := range rows {
		w.remember(r)
	}
}

var importTests = []test{
	{"imported rows are found as those that were appended; no head is written and no meter counts them", func(w *world) {
		rows := w.elsewhere("org", 10)
		tip := w.tip()
		w.imports(rows[:4], nil)
		w.imports(rows[4:], nil)
		if w.tip() != tip {
			w.Errorf("Tip = %v, want %v", w.tip(), tip)
		}
		w.commit(w.record("org"))
		w.check()
		w.wantMeter("org", storage.MonthOf(noon), 1)
		for _, r := range rows {
			got, err := w.Decided(w.ctx, "org", r.IntentID, "")
			w.Must("Decided", err)
			w.WantSame("Decided", got, r)
		}
		if got := w.organizations(); !slices.Equal(got, []string{"org"}) {
			w.Errorf("Organizations = %q, want org", got)
		}
	}},
	{"what is stored already stays as it is", func(w *world) {
		rows := w.elsewhere("org", 6)
		left := w.buried(w.elsewhere("org", 2)...)
		w.imports(rows[:3], left[:1])
		later := *rows[1] // settled in the source store after the first import
		w.settle(&later, storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)})
		w.Must("Import again", w.Import(w.ctx, "org", rows, left))
		w.Must("Import again", w.Import(w.ctx, "org", rows, left))
		for _, r := range rows {
			w.remember(r)
		}
		w.records["org"][rows[1].IntentID] = &later
		w.check()
		n, err := w.RemoveRecords(w.ctx, "org", noon.AddDate(1, 0, 0), storage.Expired{Records: 6, Settled: 6})
		w.Must("RemoveRecords", err)
		if n.Records != 6 || n.Settled != 3 {
			w.Errorf("RemoveRecords = %+v, want 6, 3 of them settled", n)
		}
		w.Must("Import of what is removed since", w.Import(w.ctx, "org", rows, left))
		w.wantLeft("org", rows, nil)
	}},
	{"another decision of an intent, or another intent of a decision, must give ErrConflict with nothing stored", func(w *world) {
		rows, own := w.elsewhere("org", 2), w.record("org")
		w.commit(own)
		w.imports(rows[:1], nil)
		swapped := *rows[0]
		swapped.IntentID = IntentID(999_999)
		taken := *own
		taken.IntentID = IntentID(999_999)
		changed := *rows[0]
		changed.AuditDigest = ""
		unsettled := *rows[1]
		unsettled.Settlement = rows[0].Settlement
		for name, bad := range map[string]*storage.Record{
			"another decision": w.again(own), "another intent": &swapped, "another intent of its own decision": &taken, "another row": &changed,
			"an intent that was removed elsewhere": rows[0],
		} {
			if name == "an intent that was removed elsewhere" {
				w.WantErr(name, w.Import(w.ctx, "org", rows[1:], w.buried(bad)), storage.ErrConflict)
			} else {
				w.WantErr(name, w.Import(w.ctx, "org", []*storage.Record{rows[1], bad}, nil), storage.ErrConflict)
			}
			w.wantMissing(rows[1])
		}
		w.imports(rows[1:], nil)
		w.WantErr("another settlement", w.Import(w.ctx, "org", []*storage.Record{&unsettled}, nil), storage.ErrConflict)
		w.check()
	}},
	{"the intent of a row that was removed before it was imported stays decided", func(w *world) {
		rows := w.elsewhere("org", 3)
		w.imports(nil, w.buried(rows...))
		w.wantLeft("org", rows, nil)
		for _, r := range rows {
			existing, err := w.append(w.noSeal, w.again(r))
			w.Must("Append", err)
			if len(existing) != 1 || existing[0] == nil || !existing[0].Removed() || existing[0].DecisionID != r.DecisionID {
				w.Errorf("existing = %+v, want what is left of %s", existing, r.DecisionID)
			}
			other := w.elsewhere("org", 1)[0]
			other.IntentID = r.IntentID
			w.WantErr("Import of another decision", w.Import(w.ctx, "org", []*storage.Record{other}, nil), storage.ErrConflict)
			w.WantErr("Import of what is left of another", w.Import(w.ctx, "org", nil, w.buried(other)), storage.ErrConflict)
		}
	}},
	{"a settlement of an imported row is one of the store's own; one that was imported stands", func(w *world) {
		rows := w.elsewhere("org", 2)
		w.imports(rows, nil)
		other := *rows[0]
		w.WantSame("existing", w.settle(&other, storage.Settlement{Outcome: "failed", RecordedAt: noon}), rows[0].SettlementEntry())
		if earlier := w.settle(rows[1], storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)}); earlier != nil {
			w.Errorf("existing = %v, want nil", earlier)
		}
		w.check()
	}},
	{"Import must refuse, with nothing stored, what CheckImport refuses, and all under a context that has ended", func(w *world) {
		good := w.elsewhere("org", 2)
		bad := func(change func(*storage.Record)) *storage.Record {
			r := *good[1]
			change(&r)
			return &r
		}
		for i, r := range []*storage.Record{
			good[0], w.elsewhere("other", 1)[0], bad(func(r *storage.Record) { r.DecisionID = "x" }), bad(func(r *storage.Record) { r.IntentID = good[0].IntentID }),
			bad(func(r *storage.Record) { r.Decision = 0 }), bad(func(r *storage.Record) { r.DecidedAt = noon.AddDate(1, 0, 0) }),
			bad(func(r *storage.Record) { r.Settle(storage.Settlement{Outcome: "failed", RecordedAt: noon}) }),
		} {
			if err := w.Import(w.ctx, "org", []*storage.Record{good[0], r}, nil); err == nil {
				w.Errorf("Import of bad row %d = nil, want an error", i)
			}
		}
		left := w.buried(good[1])
		left[0].Leaves = nil
		if err := w.Import(w.ctx, "org", good[:1], left); err == nil {
			w.Error("Import of a removed row without leaves = nil, want an error")
		}
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		w.WantErr("Import", w.Import(ctx, "org", good, nil), context.Canceled)
		for _, r := range good {
			w.wantMissing(r)
		}
		if n := len(w.history("org", storage.Filter{}, 9)); n > 0 {
			w.Errorf("%d rows are there, want none", n)
		}
	}},
	{"RemoveImported removes what was imported, in steps, and nothing else; it can be imported again", func(w *world) {
		rows, left := w.elsewhere("org", 7), w.buried(w.elsewhere("org", 3)...)
		other := w.elsewhere("other", 1)
		w.Must("Import", w.Import(w.ctx, "other", other, nil))
		own := w.record("org")
		w.commit(own)
		w.Must("Import", w.Import(w.ctx, "org", rows, left))
		n, err := w.RemoveRecords(w.ctx, "org", rows[1].DecidedAt.Add(2*storage.MaxSkew), storage.Expired{Records: 1, Settled: 1})
		w.Must("RemoveRecords", err)
		count := func(want storage.Imported) {
			w.Helper()
			got, err := w.CountImported(w.ctx, "org")
			w.Must("CountImported", err)
			if got != want {
				w.Errorf("CountImported = %+v, want %+v", got, want)
			}
		}
		count(storage.Imported{Rows: 7 - n.Records, Removed: 3 + n.Records})
		for _, want := range []int{4, 4, 2, 0} {
			n, err := w.RemoveImported(w.ctx, "org", 4)
			w.Must("RemoveImported", err)
			if n != want {
				w.Errorf("RemoveImported = %d, want %d", n, want)
			}
		}
		count(storage.Imported{})
		for _, r := range rows {
			w.wantMissing(r)
			_, err := w.Decided(w.ctx, "org", r.IntentID, "")
			w.WantErr("Decided", err, storage.ErrNotFound)
		}
		_, err = w.Decided(w.ctx, "other", other[0].IntentID, "")
		w.Must("Decided of another organization", err)
		w.check()
		w.imports(rows, left)
		w.check()
	}},
	{"RemoveImported must give ErrConflict with nothing removed where the store has signed a settlement", func(w *world) {
		rows := w.elsewhere("org", 3)
		w.imports(rows, nil)
		settled := *rows[1]
		w.settle(&settled, storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)})
		w.records["org"][settled.IntentID] = &settled
		n, err := w.CountImported(w.ctx, "org")
		w.Must("CountImported", err)
		if want := (storage.Imported{Rows: 3, Settled: 1}); n != want {
			w.Errorf("CountImported = %+v, want %+v", n, want)
		}
		_, err = w.RemoveImported(w.ctx, "org", 10)
		w.WantErr("RemoveImported", err, storage.ErrConflict)
		w.check()
	}},
	{"imports and appends of the same intents that race leave one decision for each", func(w *world) {
		rows := w.elsewhere("org", 24)
		Race(func(racer int) {
			for i, r := range rows {
				if racer%2 == 0 {
					if err := w.Import(w.ctx, "org", rows[i:i+1], nil); err == nil {
						w.remember(r)
					} else {
						w.WantErr(fmt.Sprint("Import ", i), err, storage.ErrConflict)
					}
				} else {
					w.commit(w.again(r))
				}
			}
		})
		w.check()
	}},
}
