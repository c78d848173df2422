package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// hourly commits n records of org. The first record is decided at noon, and each later record one
// hour after its predecessor.
func (w *world) hourly(org string, n int) []*storage.Record {
	w.Helper()
	records := make([]*storage.Record, n)
	for i := range records {
		at := noon.Add(time.Duration(i) * time.Hour)
		records[i] = w.record(org, func(r *storage.Record) {
			r.DecidedAt, r.DecisionID, r.AgentID = at, decisionID(at, int64(i)), fmt.Sprint("agent-", i%2)
		})
	}
	w.commit(records...)
	return records
}

func (w *world) remove(org string, before time.Time, max, want int) {
	w.Helper()
	n, err := w.CountExpired(w.ctx, org, before, max)
	if n.Records != want || err != nil {
		w.Errorf("CountExpired(%q, %v, %d) = %+v, %v, want %d", org, before, max, n, err, want)
	}
	got, err := w.RemoveRecords(w.ctx, org, before, storage.Expired{Records: max, Settled: n.Settled})
	w.Must("RemoveRecords", err)
	if got != n {
		w.Errorf("RemoveRecords(%q, %v, %d) = %+v, want %+v", org, before, max, got, n)
	}
}

// wantLeft checks that org's history contains exactly the records left. all contains left and the
// removed records.
func (w *world) wantLeft(org string, all, left []*storage.Record) {
	w.Helper()
	newest := slices.Clone(left)
	slices.Reverse(newest)
	for _, f := range []storage.Filter{
		{}, {Decision: engine.Allow}, {Decision: engine.ApprovalRequired}, {Decision: engine.Deny}, {AgentIDs: []string{"agent-1"}}, {From: noon},
	} {
		w.WantSame(fmt.Sprintf("ListRecords(%+v)", f), w.history(org, f, 4), selected(newest, f))
	}
	for _, r := range all {
		got, err := w.Record(w.ctx, org, r.DecisionID)
		if slices.Contains(left, r) {
			w.Must("Record", err)
			w.WantSame("Record", got, r)
			continue
		}
		w.WantErr("Record of what is removed", err, storage.ErrNotFound)
		gone := *r
		if earlier := w.settle(&gone, storage.Settlement{Outcome: "failed", RecordedAt: noon}); earlier == nil || !earlier.Removed() {
			w.Errorf("Append of a settlement of what is removed = %v, want one that is Removed", earlier)
		}
	}
}

func (w *world) countHeads() (n int) {
	w.Helper()
	w.Must("Heads", w.Heads(w.ctx, w.tip().ID, 0, func(receipt.SignedHead) error { n++; return nil }))
	return n
}

var retentionTests = []test{
	{"RemoveRecords removes the oldest records that were decided before a time, max at most", func(w *world) {
		all, others := w.hourly("org", 20), w.hourly("other", 3)
		w.remove("org", noon, 100, 0)
		w.remove("nobody", noon.AddDate(1, 0, 0), 100, 0)
		before := noon.Add(12*time.Hour + time.Hour/2) // 13 records are older
		for _, step := range []struct{ removed, left int }{{5, 15}, {5, 10}, {3, 7}, {0, 7}} {
			w.remove("org", before, 5, step.removed)
			w.wantLeft("org", all, all[20-step.left:])
		}
		w.remove("org", noon.AddDate(1, 0, 0), 100, 7)
		w.wantLeft("org", all, nil)
		w.wantLeft("other", others, others)
	}},
	{"RemoveRecords must remove none that was decided at the time or after, whatever its id's own time within MaxSkew", func(w *world) {
		var all []*storage.Record
		for i, skew := range []time.Duration{0, time.Millisecond, -storage.MaxSkew, storage.MaxSkew, -time.Second, time.Second} {
			for j, at := range []time.Time{noon.Add(-3 * storage.MaxSkew), noon.Add(-time.Millisecond), noon, noon.Add(time.Millisecond)} {
				all = append(all, w.record("org", func(r *storage.Record) {
					r.DecidedAt, r.DecisionID = at, decisionID(at.Add(skew), int64(10*i+j))
				}))
			}
		}
		w.commit(all...)
		n, err := w.RemoveRecords(w.ctx, "org", noon, storage.Expired{Records: 1000})
		w.Must("RemoveRecords", err)
		left := w.history("org", storage.Filter{}, 100)
		if len(left) != len(all)-n.Records || n.Records < 6 {
			w.Errorf("RemoveRecords = %+v, of %d records %d are left", n, len(all), len(left))
		}
		if got := w.history("org", storage.Filter{From: noon}, 100); len(got) != 12 {
			w.Errorf("%d records that were decided at the time or after are left, want 12", len(got))
		}
		for _, r := range left {
			if r.DecidedAt.Before(noon.Add(-2 * storage.MaxSkew)) {
				w.Errorf("a record of %v is left", r.DecidedAt)
			}
		}
	}},
	{"the heads and the meters of removed records stay", func(w *world) {
		w.hourly("org", 5)
		w.commit(w.record("org"))
		heads, tip := w.countHeads(), w.tip()
		w.remove("org", noon.AddDate(1, 0, 0), 100, 6)
		if got := w.countHeads(); got != heads || w.tip() != tip {
			w.Errorf("there are %d heads, the tip is %v; want %d, %v", got, w.tip(), heads, tip)
		}
		w.wantMeter("org", 202611, 6)
		w.wantMeters(202611, map[string]int64{"org": 6})
		w.commit(w.record("org"))
		w.wantMeter("org", 202611, 7)
	}},
	{"Commit must return a Record that is Removed for the intent of a removed record, and decide it no more", func(w *world) {
		all := w.hourly("org", 4)
		w.remove("org", noon.Add(90*time.Minute), 100, 2)
		fresh := w.record("org")
		batch := []*storage.Record{w.again(all[0]), fresh, w.again(all[3]), w.again(all[1]), w.again(all[0])}
		existing := w.commit(batch...)
		gone := func(r *storage.Record) *storage.Record {
			return &storage.Record{OrganizationID: "org", IntentID: r.IntentID, ApprovalID: r.ApprovalID, DecisionID: r.DecisionID}
		}
		w.WantSame("existing", existing, []*storage.Record{gone(all[0]), nil, all[3], gone(all[1]), gone(all[0])})
		for i, r := range existing {
			if r != nil && r.Removed() != (i != 2) {
				w.Errorf("existing[%d].Removed() = %v, want %v", i, r.Removed(), i != 2)
			}
		}
		_, err := w.append(w.noSeal, w.again(all[1]))
		w.Must("Append of a removed intent alone", err)
		earlier, err := w.Decided(w.ctx, "org", all[1].IntentID, "")
		w.Must("Decided of a removed intent", err)
		w.WantSame("Decided of a removed intent", []*storage.Record{earlier}, []*storage.Record{gone(all[1])})
		w.wantLeft("org", append(all, fresh), []*storage.Record{fresh, all[2], all[3]})
		w.wantMeter("org", 202611, 5)
		// The other organization has never decided the intent.
		if r := w.commit(w.record("other", func(r *storage.Record) { r.IntentID = all[0].IntentID })); r[0] != nil {
			w.Errorf("existing in another organization = %v, want nil", r[0])
		}
	}},
	{"Forget forgets intents of records that are removed, were decided between the times and under no approval, max at most", func(w *world) {
		store, ok := w.Store.(storage.Forgetter)
		if !ok {
			w.Skip("SKIPPED: this backend cannot forget intents")
		}
		all, others := w.hourly("org", 8), w.hourly("other", 2)
		at := noon.Add(3 * time.Hour).Add(time.Second)
		approved := w.record("org", func(r *storage.Record) {
			r.IntentID, r.ApprovalID, r.DecidedAt, r.DecisionID = all[3].IntentID, all[3].DecisionID, at, decisionID(at, 99)
		})
		w.commit(approved)
		w.settle(all[2], storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(3 * time.Hour)})
		w.remove("org", noon.Add(6*time.Hour+30*time.Minute), 100, 8) // one stays
		w.remove("other", noon.AddDate(1, 0, 0), 100, 2)
		heads, tip := w.countHeads(), w.tip()
		from, before := noon.Add(30*time.Minute), noon.Add(5*time.Hour+30*time.Minute) // decisions 1 to 5
		for _, test := range []struct{ max, want int }{{3, 3}, {3, 2}, {3, 0}} {
			if n, err := store.Forget(w.ctx, "org", from, before, test.max); n != test.want || err != nil {
				w.Errorf("Forget of %d = %d, %v, want %d", test.max, n, err, test.want)
			}
		}
		for i, r := range append(slices.Clone(all[:7]), approved, others[0], others[1]) {
			got, err := w.Decided(w.ctx, r.OrganizationID, r.IntentID, r.ApprovalID)
			if i >= 1 && i <= 5 {
				w.WantErr(fmt.Sprint("Decided of the forgotten intent ", i), err, storage.ErrNotFound)
			} else if w.Must("Decided", err); got == nil || !got.Removed() {
				w.Errorf("Decided of intent %d, which is not forgotten, = %+v, want one that is Removed", i, got)
			}
		}
		w.wantLeft("org", all, all[7:])
		w.wantMeter("org", 202611, 8)
		if got := w.countHeads(); got != heads || w.tip() != tip {
			w.Errorf("there are %d heads, the tip is %v; want %d, %v", got, w.tip(), heads, tip)
		}
		if existing, err := w.append(w.writer.Seal, w.again(all[1])); err != nil || existing[0] != nil {
			w.Errorf("existing of a forgotten intent = %v, %v, want nil", existing, err)
		}
		for _, max := range []int{0, -1} {
			if n, err := store.Forget(w.ctx, "org", noon, noon.AddDate(1, 0, 0), max); err == nil {
				w.Errorf("Forget of %d = %d, nil; want an error", max, n)
			}
		}
	}},
	{"Organizations calls f for each organization that has records, once", func(w *world) {
		_, err := w.Update(w.ctx, "idle", put("idle", "r"))
		w.Must("Update", err)
		want := slices.Sorted(slices.Values(Hostile))
		for _, org := range Hostile {
			w.hourly(org, 2)
		}
		w.WantSame("Organizations", w.organizations(), want)
		for _, org := range Hostile {
			w.remove(org, noon.AddDate(1, 0, 0), 10, 2)
			want = slices.DeleteFunc(want, func(s string) bool { return s == org })
			w.WantSame("Organizations", w.organizations(), want)
		}
		w.hourly("a", 1)
		enough := errors.New("enough")
		w.WantErr("Organizations", w.Organizations(w.ctx, func(string) error { return enough }), enough)
	}},
	{"RemoveRecords must stop before a settled record that is one more than most.Settled; CountExpired counts them", func(w *world) {
		all := w.hourly("org", 8)
		for _, i := range []int{1, 4, 5} {
			w.settle(all[i], storage.Settlement{Outcome: "failed", RecordedAt: noon})
		}
		after := noon.AddDate(1, 0, 0)
		for _, test := range []struct{ max, records, settled int }{{1, 1, 0}, {2, 2, 1}, {5, 5, 2}, {99, 8, 3}} {
			n, err := w.CountExpired(w.ctx, "org", after, test.max)
			if want := (storage.Expired{Records: test.records, Settled: test.settled}); n != want || err != nil {
				w.Errorf("CountExpired of %d = %+v, %v, want %+v", test.max, n, err, want)
			}
		}
		for _, test := range []struct{ most, want storage.Expired }{
			{storage.Expired{Records: 9}, storage.Expired{Records: 1}},
			{storage.Expired{Records: 9}, storage.Expired{}},
			{storage.Expired{Records: 9, Settled: 2}, storage.Expired{Records: 4, Settled: 2}},
			{storage.Expired{Records: 2, Settled: 2}, storage.Expired{Records: 2, Settled: 1}},
		} {
			n, err := w.RemoveRecords(w.ctx, "org", after, test.most)
			if n != test.want || err != nil {
				w.Errorf("RemoveRecords of %+v = %+v, %v, want %+v", test.most, n, err, test.want)
			}
		}
		w.wantLeft("org", all, all[7:])
	}},
	{"most.Records must be positive, and a context that has ended removes nothing", func(w *world) {
		all := w.hourly("org", 3)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		_, err := w.RemoveRecords(ctx, "org", noon.AddDate(1, 0, 0), storage.Expired{Records: 10})
		w.WantErr("RemoveRecords", err, context.Canceled)
		w.WantErr("Organizations", w.Organizations(ctx, func(string) error { return nil }), context.Canceled)
		for _, max := range []int{0, -1} {
			if n, err := w.RemoveRecords(w.ctx, "org", noon.AddDate(1, 0, 0), storage.Expired{Records: max}); err == nil {
				w.Errorf("RemoveRecords of %d = %+v, nil; want an error", max, n)
			}
		}
		w.wantLeft("org", all, all)
	}},
	{"of racing settlements, commits, lists and removals none fails for a record that is gone, and none brings it back", func(w *world) {
		all := w.hourly("org", 64)
		Race(func(racer int) {
			for i, r := range all {
				switch racer % 4 {
				case 0:
					_, err := w.RemoveRecords(w.ctx, "org", noon.AddDate(1, 0, 0), storage.Expired{Records: 1 + i%5, Settled: 64})
					w.noErr("RemoveRecords", err)
				case 1:
					mine := *r
					w.settle(&mine, storage.Settlement{Outcome: "failed", RecordedAt: noon})
				case 2:
					existing, err := w.append(w.noSeal, w.again(r))
					w.noErr("Append", err)
					if len(existing) != 1 || existing[0] == nil || existing[0].DecisionID != r.DecisionID {
						w.Errorf("existing = %v, want decision %s", existing, r.DecisionID)
					}
				case 3:
					_, _, err := w.ListRecords(w.ctx, "org", storage.Filter{Decision: r.Decision}, storage.Page{Limit: 50})
					w.noErr("ListRecords", err)
				}
			}
		})
		w.wantLeft("org", all, nil)
		w.wantMeter("org", storage.MonthOf(noon), w.decidedIn("org", storage.MonthOf(noon)))
	}},
}

// organizations returns, sorted, the organizations that the store lists.
func (w *world) organizations() []string {
	w.Helper()
	var orgs []string
	w.Must("Organizations", w.Organizations(w.ctx, func(org string) error {
		orgs = append(orgs, org)
		return nil
	}))
	slices.Sort(orgs)
	return orgs
}

func (w *world) noErr(what string, err error) {
	w.Helper()
	w.WantErr(what, err, nil)
}

// decidedIn returns how many records of org were committed in a month.
func (w *world) decidedIn(org string, month storage.Month) (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.records[org] {
		if storage.MonthOf(r.DecidedAt) == month {
			n++
		}
	}
	return n
}
