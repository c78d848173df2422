package storagetest

import (
	"errors"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

var decisionTests = []test{
	{"Commit makes the first of an intent, the head and the meter durable", func(w *world) {
		w.check()
		for _, n := range []int{1, 2, 17} {
			var batch []*storage.Record
			for range n {
				batch = append(batch, w.record("org"))
			}
			for i, r := range w.commit(batch...) {
				if r != nil {
					w.Errorf("existing[%d] = %s, want nil", i, r.DecisionID)
				}
			}
			w.check()
		}
	}},
	{"a record keeps every field, those that are not set too", func(w *world) {
		w.commit(w.record("org"), w.record("org", func(r *storage.Record) {
			*r = storage.Record{
				OrganizationID: r.OrganizationID, IntentID: r.IntentID, DecisionID: r.DecisionID,
				Decision: engine.Deny, DecidedAt: r.DecidedAt,
			}
		}), w.record("org", func(r *storage.Record) {
			r.Cost = &engine.Cost{AmountMinor: -1 << 62}
			r.PolicyVersion = 1<<53 - 1
			r.Resource = strings.Repeat("x", 100_000)
		}))
		w.check()
	}},
	{"existing is the record that an earlier Commit stored", func(w *world) {
		first := w.record("org")
		w.commit(first)
		second := w.record("org")
		existing := w.commit(w.again(first), second, w.again(first))
		w.WantSame("existing", existing, []*storage.Record{first, nil, first})
		w.check()
	}},
	{"Decided returns the record that stands for an intent, or ErrNotFound", func(w *world) {
		first := w.record("org")
		_, err := w.Decided(w.ctx, "org", first.IntentID, "")
		w.WantErr("Decided before", err, storage.ErrNotFound)
		w.commit(first)
		w.commit(w.again(first))
		got, err := w.Decided(w.ctx, "org", first.IntentID, "")
		w.Must("Decided", err)
		w.WantSame("Decided", []*storage.Record{got}, []*storage.Record{first})
		_, err = w.Decided(w.ctx, "other", first.IntentID, "")
		w.WantErr("Decided of another organization", err, storage.ErrNotFound)
		w.check()
	}},
	{"an intent is decided once more under an approval, once, and that counts in no meter", func(w *world) {
		held, other := w.record("org"), w.record("org")
		w.commit(held, other)
		approved := w.record("org", func(r *storage.Record) { r.IntentID, r.ApprovalID = held.IntentID, held.DecisionID })
		next := w.record("org", func(r *storage.Record) { r.IntentID, r.ApprovalID = held.IntentID, other.DecisionID })
		_, err := w.Decided(w.ctx, "org", held.IntentID, held.DecisionID)
		w.WantErr("Decided before", err, storage.ErrNotFound)
		w.WantSame("existing", w.commit(approved, w.again(approved), w.again(held)), []*storage.Record{nil, approved, held})
		w.WantSame("existing", w.commit(w.again(approved), next), []*storage.Record{approved, nil})
		for _, r := range []*storage.Record{held, approved, next} {
			got, err := w.Decided(w.ctx, "org", r.IntentID, r.ApprovalID)
			w.Must("Decided", err)
			w.WantSame("Decided", got, r)
		}
		_, err = w.Decided(w.ctx, "other", held.IntentID, held.DecisionID)
		w.WantErr("Decided of another organization", err, storage.ErrNotFound)
		w.wantMeter("org", 202611, 2)
		w.check()
	}},
	{"an intent id with a zero byte must give an error with nothing stored", func(w *world) {
		good, held := w.record("org"), w.record("org")
		bad := w.record("org", func(r *storage.Record) { r.IntentID = held.IntentID + "\x00" + held.DecisionID })
		if _, err := w.append(w.writer.Seal, good, bad); err == nil {
			w.Error("Append = nil, want an error")
		}
		w.wantMissing(good)
	}},
	{"existing is the record that an earlier element of batch stored", func(w *world) {
		a, b := w.record("org"), w.record("org")
		existing := w.commit(a, w.again(a), b, w.again(a), w.again(b))
		w.WantSame("existing", existing, []*storage.Record{nil, a, nil, a, b})
		w.check()
	}},
	{"nothing must be stored when no record is first, although seal signs or fails", func(w *world) {
		existing, err := w.append(w.noSeal)
		if len(existing) != 0 || err != nil {
			w.Errorf("Append of nothing = %v, %v; want none, nil", existing, err)
		}
		r := w.record("org")
		w.commit(r)
		for name, seal := range map[string]storage.Seal{
			"a seal that signs": w.writer.Seal, "a seal that fails": w.noSeal,
			"a seal that signs nothing": func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
				return storage.Batch{}, receipt.SignedHead{}, nil
			},
		} {
			for range 20 { // a backend may look intents up for a while after one was decided already
				w.commit(w.record("org"))
			}
			tip := w.tip()
			existing, err = w.append(seal, w.again(r), w.again(r))
			w.Must("Append with "+name, err)
			w.WantSame("existing", existing, []*storage.Record{r, r})
			if w.tip() != tip {
				w.Errorf("Append of stored records with %s moved the chain", name)
			}
		}
		w.check()
	}},
	{"the last call of seal gets the tip and exactly the first records, in order", func(w *world) {
		old, a, b := w.record("org"), w.record("org"), w.record("other")
		w.commit(old)
		var got []*storage.Record
		want, on := w.tip(), receipt.Chain{}
		_, err := w.append(func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			got, on = append(got[:0], fresh.Records...), tip
			return w.writer.Seal(tip, fresh)
		}, w.again(old), a, w.again(a), b)
		w.Must("Append", err)
		if on != want {
			w.Errorf("seal got tip %v, want %v", on, want)
		}
		if len(got) != 2 || got[0] != a || got[1] != b {
			w.Errorf("seal got %d records, want a and b", len(got))
		}
		w.remember(a)
		w.remember(b)
		w.check()
	}},
	{"what seal leaves out must not be stored", func(w *world) {
		w.commit(w.record("org"))
		a, b, c := w.record("org"), w.record("other"), w.record("org")
		existing, err := w.append(func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return w.writer.Seal(tip, storage.Batch{Records: []*storage.Record{fresh.Records[0], fresh.Records[2]}})
		}, a, b, c)
		w.Must("Append", err)
		if existing[0] != nil || existing[1] != nil || existing[2] != nil {
			w.Errorf("Commit = %v, want nothing that stood before", existing)
		}
		w.remember(a)
		w.remember(c)
		w.wantMissing(b)
		tip := w.tip()
		_, err = w.append(func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return storage.Batch{}, receipt.SignedHead{}, nil
		}, b)
		w.Must("Append of nothing", err)
		if w.tip() != tip {
			w.Error("Commit of nothing moved the chain")
		}
		w.wantMissing(b)
		w.commit(b)
		w.check()
	}},
	{"seal's error must be returned with nothing stored", func(w *world) {
		w.commit(w.record("org"))
		refused := errors.New("refused")
		r := w.record("org")
		_, err := w.append(func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			return storage.Batch{}, receipt.SignedHead{}, refused
		}, r)
		w.WantErr("Append", err, refused)
		w.wantMissing(r)
		w.commit(r)
		w.check()
	}},
	{"a head that does not extend LastHead must give ErrConflict with nothing stored", func(w *world) {
		start := w.tip()
		w.commit(w.record("org"))
		first := w.tip()
		w.commit(w.record("org"))
		ahead, foreign, forked := w.tip(), w.tip(), w.tip()
		ahead.Seq++
		foreign.ID[0]++
		forked.Prev[31]++
		for name, tip := range map[string]receipt.Chain{
			"start": start, "first": first, "ahead": ahead, "foreign": foreign, "forked": forked,
		} {
			r := w.record("org")
			_, err := w.append(func(_ receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
				return w.writer.Seal(tip, fresh)
			}, r)
			w.WantErr("Append on "+name, err, storage.ErrConflict)
			w.wantMissing(r)
		}
		w.check()
		w.commit(w.record("org"))
		w.check()
	}},
	{"a record whose DecisionID is not as Record says must give an error with nothing stored", func(w *world) {
		good := w.record("org")
		for _, id := range []string{
			"", "d1", "0190f5e6-0000-4000-8000-000000000000", strings.ToUpper(decisionID(noon, 0xabcdef)),
			"{" + decisionID(noon, 1) + "}", "urn:uuid:" + decisionID(noon, 1),
			decisionID(noon.Add(time.Hour), 1), decisionID(noon.Add(-time.Hour), 1),
		} {
			bad := w.record("org", func(r *storage.Record) { r.DecisionID = id })
			_, err := w.append(w.writer.Seal, good, bad)
			if err == nil {
				w.Errorf("Commit of decision %q = nil, want an error", id)
			}
		}
		w.wantMissing(good)
		w.check()
	}},
	{"a record counts for the month of its DecidedAt, in UTC", func(w *world) {
		last := time.Date(2026, 11, 30, 23, 59, 59, 999_999_999, time.UTC)
		for i, t := range []time.Time{last, last.Add(1), last.In(time.FixedZone("", 3600)), last.AddDate(1, 0, 0)} {
			w.commit(w.record("org", func(r *storage.Record) { r.DecidedAt, r.DecisionID = t, decisionID(t, int64(i)) }))
			w.check()
		}
		w.wantMeter("org", 202611, 2)
		w.wantMeter("org", 202612, 1)
		w.wantMeter("org", 202711, 1)
		w.wantMeter("org", 202610, 0)
	}},
	{"Metered returns how many distinct intents org had decided", func(w *world) {
		a, b := w.record("org"), w.record("other")
		w.wantMeter("org", 202611, 0)
		w.commit(a, w.again(a), b)
		w.commit(w.again(a), w.record("other"))
		w.wantMeter("org", 202611, 1)
		w.wantMeter("other", 202611, 2)
		w.check()
	}},
	{"Heads calls f for each head in order of its sequence, from seq on", func(w *world) {
		for range 5 {
			w.commit(w.record("org"))
		}
		for _, from := range []uint64{0, 1, 3, 5, 6, 1 << 63} {
			next := max(from, 1)
			w.Must("Heads", w.Heads(w.ctx, w.tip().ID, from, func(h receipt.SignedHead) error {
				if h.Seq != next {
					w.Errorf("Heads(%d) gave head %d, want %d", from, h.Seq, next)
				}
				next++
				return nil
			}))
			if want := max(from, 6); next != want {
				w.Errorf("Heads(%d) ended before head %d, want %d", from, next, want)
			}
		}
		enough := errors.New("enough")
		w.WantErr("Heads", w.Heads(w.ctx, w.tip().ID, 1, func(receipt.SignedHead) error { return enough }), enough)
		w.Must("Heads of another chain", w.Heads(w.ctx, [16]byte{1}, 0, func(h receipt.SignedHead) error { return enough }))
	}},
}

func (w *world) wantMissing(r *storage.Record) {
	w.Helper()
	_, err := w.Record(w.ctx, r.OrganizationID, r.DecisionID)
	w.WantErr("Record", err, storage.ErrNotFound)
}
