package storagetest

import (
	"fmt"
	"slices"
	"time"

	"writ.example/writ/storage"
)

func (w *world) entry(org string, kind storage.EntryKind, key string) *storage.Entry {
	body := fmt.Sprintf(`{"entry":%q,"n":%d}`, kind, w.writer.step())
	return &storage.Entry{Kind: kind, OrganizationID: org, Key: key, Body: []byte(body)}
}

// enter appends entries. For each entry it returns the stored entry with the same key, or nil if
// there was none.
func (w *world) enter(entries ...*storage.Entry) []*storage.Entry {
	w.Helper()
	existing, err := w.Append(w.ctx, storage.Batch{Entries: entries}, w.writer.Seal)
	w.Must("Append of entries", err)
	if len(existing.Entries) != len(entries) {
		w.Fatalf("Append of %d entries = %d existing", len(entries), len(existing.Entries))
	}
	return existing.Entries
}

var entryTests = []test{
	{"an entry is unique in its organization and kind; existing is what stands", func(w *world) {
		a := w.entry("org", storage.ChangeEntry, "k")
		if earlier := w.enter(a); earlier[0] != nil {
			w.Errorf("existing = %v, want nil", earlier[0])
		}
		others := []*storage.Entry{
			w.entry("org", storage.ChangeEntry, "k"), w.entry("org", storage.VerdictEntry, "k"),
			w.entry("other", storage.ChangeEntry, "k"), w.entry("org", storage.ChangeEntry, "k2"), nil,
		}
		others[4] = w.entry("org", storage.ChangeEntry, "k2")
		w.WantSame("existing", w.enter(others...), []*storage.Entry{a, nil, nil, nil, others[3]})
		_, err := w.Append(w.ctx, storage.Batch{Entries: []*storage.Entry{w.entry("org", storage.ChangeEntry, "k")}}, w.noSeal)
		w.Must("Append of a known entry", err)
		w.records["org"], w.records["other"] = nil, nil // check reads these organizations too
		w.check()
	}},
	{"Entry returns org's entry of a kind and key, or ErrNotFound", func(w *world) {
		e := w.entry("org", storage.VerdictEntry, "k")
		_, err := w.Entry(w.ctx, "org", storage.VerdictEntry, "k")
		w.WantErr("Entry before", err, storage.ErrNotFound)
		w.enter(e, w.entry("org", storage.ChangeEntry, "other"), w.entry("org", storage.VerdictEntry, "k2"))
		got, err := w.Entry(w.ctx, "org", storage.VerdictEntry, "k")
		w.Must("Entry", err)
		w.WantSame("Entry", got, e)
		for _, none := range []storage.Entry{
			{OrganizationID: "other", Kind: storage.VerdictEntry, Key: "k"}, {OrganizationID: "org", Kind: storage.ChangeEntry, Key: "k"},
			{OrganizationID: "org", Kind: storage.VerdictEntry}, {OrganizationID: "org", Kind: "x", Key: "k"},
		} {
			_, err = w.Entry(w.ctx, none.OrganizationID, none.Kind, none.Key)
			w.WantErr(fmt.Sprintf("Entry of %v", none), err, storage.ErrNotFound)
		}
	}},
	{"records and entries of a batch are under one head, the records first", func(w *world) {
		r, e := w.record("org"), w.entry("org", storage.RetentionEntry, "k")
		_, err := w.Append(w.ctx, storage.Batch{Records: []*storage.Record{r}, Entries: []*storage.Entry{e}}, w.writer.Seal)
		w.Must("Append", err)
		w.remember(r)
		if tip := w.tip(); tip.Seq != 1 {
			w.Errorf("Tip is head %d, want 1", tip.Seq)
		}
		w.check()
	}},
	{"Entries returns org's entries of a kind, newest first", func(w *world) {
		var want []*storage.Entry
		for i := range 7 {
			e := w.entry("org", storage.ChangeEntry, fmt.Sprint(9-i))
			want = append(want, e)
			w.enter(e, w.entry("org", storage.VerdictEntry, fmt.Sprint(i)), w.entry("or", storage.ChangeEntry, fmt.Sprint(i)))
		}
		slices.Reverse(want)
		for _, limit := range []int{1, 3, 7, 8} {
			w.WantSame("Entries", All(w, limit, func(p storage.Page) ([]*storage.Entry, string, error) {
				return w.Entries(w.ctx, "org", storage.ChangeEntry, p)
			}), want)
		}
		_, next, err := w.Entries(w.ctx, "org", storage.ChangeEntry, storage.Page{Limit: 1})
		w.Must("Entries", err)
		for _, after := range []string{"x", next + "x", next[:len(next)-2]} {
			_, _, err = w.Entries(w.ctx, "org", storage.ChangeEntry, storage.Page{Limit: 1, After: after})
			w.WantErr("Entries after "+after, err, storage.ErrBadCursor)
		}
	}},
	{"a settlement is the first of its decision; existing is the one that stands, Removed where there is no such decision", func(w *world) {
		r := w.record("org")
		w.commit(r)
		amount := int64(99)
		if earlier := w.settle(r, storage.Settlement{Outcome: "executed", AmountMinor: &amount, Currency: "EUR", ExternalRef: "tx-1", RecordedAt: noon, Releases: true}); earlier != nil {
			w.Errorf("existing = %v, want nil", earlier)
		}
		other := *r
		earlier := w.settle(&other, storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)})
		w.WantSame("existing", earlier, r.SettlementEntry())
		none := w.record("org")
		if earlier := w.settle(none, storage.Settlement{Outcome: "failed", RecordedAt: noon}); earlier == nil || !earlier.Removed() {
			w.Errorf("existing for no decision = %v, want one that is Removed", earlier)
		}
		none.Settlement = nil
		w.commit(none)
		w.check()
	}},
	{"a record that has a settlement, and an entry of no kind or body, must give an error with nothing stored", func(w *world) {
		good, settled := w.record("org"), w.record("org")
		settled.Settle(storage.Settlement{Outcome: "failed", RecordedAt: noon})
		_, err := w.append(w.writer.Seal, good, settled)
		if err == nil {
			w.Error("Append of a settled record = nil, want an error")
		}
		for _, e := range []*storage.Entry{
			w.entry("org", "x", "k"), {Kind: storage.ChangeEntry, OrganizationID: "org", Key: "k"},
			{Kind: storage.SettlementEntry, OrganizationID: "org", Key: good.DecisionID, Body: []byte("{}")},
		} {
			if _, err := w.Append(w.ctx, storage.Batch{Records: []*storage.Record{good}, Entries: []*storage.Entry{e}}, w.writer.Seal); err == nil {
				w.Errorf("Append of %+v = nil, want an error", e)
			}
		}
		w.wantMissing(good)
		w.check()
	}},
}
