package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Check checks the invariants of the whole history of a store. It returns the records of each
// organization, the newest first. orgs must name all organizations that have records.
//
// Each record can be read by time, decision, id and intent, and each read returns the same record.
// No two records share an intent or a decision id. Each receipt verifies with a head of the chain.
// The heads form an unbroken chain, the keys verify their signatures, and the heads cover exactly
// the records and entries. Each meter equals the number of intents that were decided in its month.
// A record whose head is in another chain was imported. The store's heads do not cover an imported
// record, and no meter counts the record. The counts equal the numbers of the records.
//
// The store must be able to commit. Check commits each intent again, because the store has no other
// read by intent. These commits store nothing.
func Check(t *testing.T, s storage.Store, keys receipt.Keys, orgs ...string) map[string][]*storage.Record {
	t.Helper()
	c := checker{Checks: Checks{t}, store: s, keys: keys}
	c.checkHeads()
	history := make(map[string][]*storage.Record)
	for _, org := range orgs {
		history[org] = c.list(org, storage.Filter{}, 7)
		c.checkOrganization(org, history[org])
	}
	covered, total := 0, 0
	for _, h := range c.heads {
		covered += int(h.Size)
	}
	for org, records := range history {
		total += c.checkEntries(org)
		for _, r := range records {
			if c.own(r.Receipt.Inclusion()) {
				total++
			}
			if r.Settlement != nil && c.own(*r.Settlement.Receipt) {
				total++
			}
		}
	}
	if covered != total {
		t.Errorf("heads cover %d leaves, want %d", covered, total)
	}
	return history
}

type checker struct {
	Checks
	store storage.Store
	keys  receipt.Keys
	heads []receipt.SignedHead
	chain [16]byte
}

// own reports whether a leaf is in a chain of this store, and not in an imported chain.
func (c *checker) own(in receipt.Inclusion) bool {
	chain, err := in.Chain()
	return err != nil || chain == c.chain
}

func (c *checker) checkHeads() {
	c.Helper()
	tip, err := c.store.Tip(c.Context())
	c.Must("Tip", err)
	c.chain = tip.ID
	c.Must("Heads(0)", c.store.Heads(c.Context(), tip.ID, 0, func(h receipt.SignedHead) error {
		c.heads = append(c.heads, h)
		return nil
	}))
	reached, err := receipt.VerifyChain(receipt.Chain{ID: tip.ID}, slices.Values(c.heads), c.keys)
	if err != nil || reached != tip {
		c.Errorf("VerifyChain(Heads) = head %d, %v; want the tip, head %d", reached.Seq, err, tip.Seq)
	}
	var chains []receipt.Chain
	c.Must("Chains", c.store.Chains(c.Context(), func(tip receipt.Chain) error {
		chains = append(chains, tip)
		return nil
	}))
	if want := min(1, int(tip.Seq)); len(chains) != want || want > 0 && chains[0] != tip {
		c.Errorf("Chains = %v, want the tip if there is a head", chains)
	}
}

// list returns all records that a filter selects. It reads pages of limit records.
func (c *checker) list(org string, f storage.Filter, limit int) []*storage.Record {
	c.Helper()
	return All(c, limit, func(p storage.Page) ([]*storage.Record, string, error) {
		return c.store.ListRecords(c.Context(), org, f, p)
	})
}

func (c *checker) checkOrganization(org string, records []*storage.Record) {
	c.Helper()
	newestFirst := func(a, b *storage.Record) int { return cmp.Compare(b.DecisionID, a.DecisionID) }
	if !slices.IsSortedFunc(records, newestFirst) {
		c.Errorf("ListRecords(%q) is not newest first", org)
	}
	intents, decisions := make(map[string]bool), make(map[string]bool)
	meters := make(map[storage.Month]int64)
	for _, r := range records {
		intents[r.IntentKey()], decisions[r.DecisionID] = true, true
		if r.Metered() && c.own(r.Receipt.Inclusion()) {
			meters[storage.MonthOf(r.DecidedAt)]++
		}
		got, err := c.store.Record(c.Context(), org, r.DecisionID)
		c.Must("Record("+r.DecisionID+")", err)
		c.WantSame("Record("+r.DecisionID+")", got, r)
		c.checkReceipt(r)
	}
	if len(intents) != len(records) || len(decisions) != len(records) {
		c.Errorf("%q has %d records of %d intents with %d decision ids", org, len(records), len(intents), len(decisions))
	}
	for _, d := range []engine.Decision{engine.Allow, engine.ApprovalRequired, engine.Deny} {
		f := storage.Filter{Decision: d}
		c.WantSame("ListRecords of "+d.String(), c.list(org, f, 3), selected(records, f))
	}
	for _, month := range slices.Sorted(maps.Keys(meters)) {
		n, err := c.store.Metered(c.Context(), org, month)
		c.WantSame(fmt.Sprintf("Metered(%q, %d), %v", org, month, err), n, meters[month])
	}
	c.checkCounts(org, records)
	c.checkIntents(records)
}

// CheckCounts compares the counts of each organization with a scan of its records.
func CheckCounts(t *testing.T, s storage.Store, orgs ...string) {
	t.Helper()
	c := checker{Checks: Checks{t}, store: s}
	for _, org := range orgs {
		c.checkCounts(org, c.list(org, storage.Filter{}, 100))
	}
}

// checkCounts compares the counts of org's records with the records.
func (c *checker) checkCounts(org string, records []*storage.Record) {
	c.Helper()
	type counted struct {
		by    storage.CountedBy
		value string
		at    time.Time
	}
	got, want := make(map[counted]int64), make(map[counted]int64)
	for _, r := range records {
		for _, by := range storage.CountedByAll {
			if value := r.CountedAs(by); value != "" {
				want[counted{by, value, r.DecidedAt.UTC().Truncate(time.Hour)}]++
			}
		}
	}
	for _, by := range storage.CountedByAll {
		c.Must("Counts", c.store.Counts(c.Context(), org, by, -1, 1<<20, func(n storage.Count) error {
			for hour := range n.Hours {
				got[counted{by, n.Value, n.Day.Start().Add(time.Duration(hour) * time.Hour)}] += n.Hours[hour]
			}
			return nil
		}))
	}
	maps.DeleteFunc(got, func(_ counted, n int64) bool { return n == 0 })
	if diff := gocmp.Diff(want, got); diff != "" {
		c.Errorf("the counts of %q are not those of its records (-want +got):\n%s", org, diff)
	}
}

// checkIntents checks that each record is found by its intent. It commits the intent again, because
// the store has no read by intent.
func (c *checker) checkIntents(want []*storage.Record) {
	c.Helper()
	batch := make([]*storage.Record, len(want))
	for i, r := range want {
		again := *r
		again.PolicyID, again.Settlement = "another", nil
		batch[i] = &again
	}
	existing, err := c.store.Append(c.Context(), storage.Batch{Records: batch}, func(receipt.Chain, storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		return storage.Batch{}, receipt.SignedHead{}, errors.New("seal was called for known intents")
	})
	c.Must("Append of known intents", err)
	c.WantSame("Append of known intents", existing.Records, want)
}

func (c *checker) checkReceipt(r *storage.Record) {
	c.Helper()
	c.checkLeaf("the receipt of "+r.DecisionID, r.Receipt.Inclusion(), r.Receipt.LeafHash())
	if r.Settlement != nil {
		c.checkLeaf("the settlement of "+r.DecisionID, *r.Settlement.Receipt, receipt.EntryLeaf(r.SettlementEntry().Body))
	}
}

// checkEntries checks the leaf of each entry of org that is not a settlement. It returns the number
// of these entries.
func (c *checker) checkEntries(org string) (n int) {
	c.Helper()
	for _, kind := range []storage.EntryKind{storage.VerdictEntry, storage.RetentionEntry, storage.ChangeEntry, storage.ImportEntry, storage.AbandonEntry} {
		for _, e := range All(c, 3, func(p storage.Page) ([]*storage.Entry, string, error) {
			return c.store.Entries(c.Context(), org, kind, p)
		}) {
			c.checkLeaf(string(kind)+" "+e.Key, e.Inclusion, receipt.EntryLeaf(e.Body))
			n++
		}
	}
	return n
}

func (c *checker) checkLeaf(what string, in receipt.Inclusion, leaf [32]byte) {
	c.Helper()
	if err := in.Verify(leaf, c.keys); err != nil {
		c.Errorf("Verify(%s) = %v, want nil", what, err)
		return
	}
	if !c.own(in) {
		return
	}
	h, err := in.SignedHead(leaf)
	c.Must("SignedHead", err)
	if h.Seq == 0 || h.Seq > uint64(len(c.heads)) || c.heads[h.Seq-1] != h {
		c.Errorf("%s stands under head %d, which Heads lacks", what, h.Seq)
	}
}

// All returns the items of all pages of a list. It asks for pages of limit items, and reports an
// error if a page has more.
func All[T any](t testing.TB, limit int, page func(storage.Page) ([]T, string, error)) []T {
	t.Helper()
	var items []T
	p := storage.Page{Limit: limit}
	for {
		got, next, err := page(p)
		if err != nil || len(got) > limit {
			t.Fatalf("list after %q with limit %d = %d items, %v", p.After, limit, len(got), err)
		}
		items = append(items, got...)
		if next == "" {
			return items
		}
		if next == p.After {
			t.Fatalf("list after %q = the same cursor, want progress", p.After)
		}
		p.After = next
	}
}

func selected(records []*storage.Record, f storage.Filter) []*storage.Record {
	var out []*storage.Record
	for _, r := range records {
		if f.Selects(r) {
			out = append(out, r)
		}
	}
	return out
}
