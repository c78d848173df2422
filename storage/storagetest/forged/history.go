package forged

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// Meter identifies a meter, which counts the decisions of an organization in a month.
type Meter struct {
	Org   string
	Month storage.Month
}

// History is the whole content of a store. It is a [ledger.History].
type History struct {
	*storagetest.MemoryLog
	Documents []storage.Document
	Waiting   []storage.Change
	Meters    map[Meter]int64
}

// View calls f with a reader of the documents. The reader supports only Scan by kind, because Prove
// needs nothing else.
func (h *History) View(_ context.Context, f func(storage.Reader) error) error { return f(h) }

// Get always returns storage.ErrNotFound.
func (h *History) Get(storage.Kind, string, string) (d storage.Document, err error) {
	return d, storage.ErrNotFound
}

// Scan calls f for the documents of a kind.
func (h *History) Scan(q storage.Query, f func([]byte, storage.Document) (bool, error)) error {
	for _, d := range h.Documents {
		if d.Kind != q.Kind {
			continue
		}
		if more, err := f([]byte(d.ID), d); !more || err != nil {
			return err
		}
	}
	return nil
}

// Changes returns the changes that are not signed yet.
func (h *History) Changes(_ context.Context, after storage.Change, _ int) ([]storage.Change, error) {
	if after != (storage.Change{}) {
		return nil, nil
	}
	return h.Waiting, nil
}

// CheckIndex passes the documents and the meters to read.
func (h *History) CheckIndex(_ context.Context, read storage.IndexCheck) error {
	for _, d := range h.Documents {
		_, id, _, err := storage.CollectionOf(d.Kind).Describe(d)
		if err == nil {
			err = read.Document(d, id)
		}
		if err != nil {
			return err
		}
	}
	if read.Meter == nil {
		return nil
	}
	for m, n := range h.Meters {
		if err := read.Meter(m.Org, m.Month, n); err != nil {
			return err
		}
	}
	return nil
}

// LastRevision returns the revision of the last change of a document.
func (h *History) LastRevision() (last uint64) {
	for _, d := range h.Documents {
		last = max(last, d.Revision)
	}
	for _, c := range h.Waiting {
		last = max(last, c.Revision)
	}
	return last
}

// clone returns a deep copy, which a forger may change.
func (h *History) clone() *History {
	log := storagetest.NewMemoryLog()
	for id, heads := range h.ByChain {
		log.ByChain[id] = slices.Clone(heads)
	}
	for _, r := range h.Records {
		row := *r
		if r.Settlement != nil {
			settled := *r.Settlement
			proof := *settled.Receipt
			settled.Receipt, row.Settlement = &proof, &settled
		}
		log.Records = append(log.Records, &row)
	}
	for _, e := range h.Others {
		entry := *e
		log.Others = append(log.Others, &entry)
	}
	for _, t := range h.Graves {
		left := *t
		left.Leaves = slices.Clone(t.Leaves)
		log.Graves = append(log.Graves, &left)
	}
	return &History{MemoryLog: log, Documents: slices.Clone(h.Documents), Waiting: slices.Clone(h.Waiting), Meters: make(map[Meter]int64)}
}

// count sets each meter to its number of decisions, unless a forger has set the meter.
func (h *History) count() {
	set := maps.Clone(h.Meters)
	h.MemoryLog.CheckIndex(context.Background(), storage.IndexCheck{Meter: func(org string, m storage.Month, n int64) error {
		h.Meters[Meter{org, m}] = n
		return nil
	}})
	maps.Copy(h.Meters, set)
}

func signerOf(seed byte) *receipt.Signer {
	return receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

// Keys returns the public keys of all signers.
func Keys(t testing.TB) receipt.Keys {
	t.Helper()
	keys, err := receipt.NewKeys(signerOf(1).Public(), signerOf(2).Public())
	must(t, err)
	return keys
}

// author writes histories into memory. If that fails, the test ends.
type author struct {
	t   testing.TB
	ctx context.Context
	now time.Time
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (a *author) ledger(s ledger.Store, writer string) *ledger.Ledger {
	a.t.Helper()
	l, err := ledger.Open(a.ctx, ledger.Config{Store: s, Signer: signerOf(1), Scrub: ledgertest.Plain{}, Writer: writer, Now: func() time.Time { return a.now }})
	must(a.t, err)
	a.t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			a.t.Errorf("Close = %v", err)
		}
	})
	return l
}

// decide decides intents of an organization under one head.
func (a *author) decide(l *ledger.Ledger, org string, from, to int) []*storage.Record {
	a.t.Helper()
	var entries []*ledger.Entry
	for n := from; n < to; n++ {
		d := engine.Decision(1 + n%3)
		entries = append(entries, &ledger.Entry{
			Intent: &engine.Intent{
				IntentID: intentID(n), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
				AgentID: "ci", ActionType: "deploy", Resource: "prod/web", IssuedAt: "2026-11-21T11:59:59Z",
			},
			PolicyVersion: 3,
			Result:        engine.Result{Decision: d, Findings: []engine.Finding{{Outcome: d, Reason: "policy.test: the test decided so"}}},
		})
	}
	outs, err := ledgertest.Commit(a.ctx, l, org, entries...)
	must(a.t, err)
	var rows []*storage.Record
	for _, out := range outs {
		rows = append(rows, out.Record)
	}
	return rows
}

func intentID(n int) string { return fmt.Sprintf("7d9f1c1e-3b5a-4f5e-8a67-%012d", n) }

func (a *author) settle(l *ledger.Ledger, r *storage.Record, outcome string) {
	a.t.Helper()
	_, _, err := l.Settle(a.ctx, r.OrganizationID, r.DecisionID, storage.Settlement{Outcome: outcome, RecordedAt: a.now})
	must(a.t, err)
}

// OneChain returns a history that one ledger has written under two keys. Acme, ac and rival have
// decided 16 intents each, in two months. Four of acme's are settled. Retention has removed acme's
// first four rows. One of these was settled. Six changes of documents are signed and one is not.
func OneChain(t testing.TB) *History {
	t.Helper()
	a := author{t, t.Context(), time.Date(2026, 10, 31, 23, 58, 0, 0, time.UTC)}
	memory := storagetest.NewMemory()
	h := memory.Open()
	l := a.ledger(h, "")
	var acme []*storage.Record
	for _, step := range []struct {
		wait     time.Duration
		from, to int
	}{{0, 0, 6}, {30 * 24 * time.Hour, 6, 11}, {time.Hour, 11, 16}} {
		if a.now = a.now.Add(step.wait); step.from == 11 {
			l.SignWith(signerOf(2))
		}
		for _, org := range []string{"acme", "ac", "rival"} {
			if rows := a.decide(l, org, step.from, step.to); org == "acme" {
				acme = append(acme, rows...)
			}
		}
	}
	a.settle(l, acme[0], "failed")
	a.settle(l, acme[11], storage.Executed)
	a.settle(l, acme[14], "failed")
	a.settle(l, acme[15], storage.Executed)
	update := func(org string, f func(tx storage.Tx) error) {
		_, err := h.Update(storage.WithActor(a.ctx, "operator:alice"), org, f)
		must(a.t, err)
	}
	policy := func(org string, version int64) func(tx storage.Tx) error {
		return func(tx storage.Tx) error {
			return storage.Policies.Put(tx, org, &engine.ActionPolicy{OrganizationID: org, PolicyID: "p", Version: version})
		}
	}
	rule := func(id string) func(tx storage.Tx) error {
		return func(tx storage.Tx) error {
			return storage.Rules.Put(tx, "acme", &engine.Rule{ID: id, Name: "holds"})
		}
	}
	update("acme", policy("acme", 1))
	update("acme", policy("acme", 2))
	update("acme", rule("r"))
	update("acme", func(tx storage.Tx) error { return tx.Delete(storage.RuleKind, "acme", "r") })
	update("acme", rule("q"))
	update("rival", policy("rival", 1))
	must(a.t, l.SignChanges(a.ctx, h))
	update("acme", rule("b"))
	before := a.now.Add(-24 * time.Hour)
	must(a.t, l.Retain(a.ctx, "acme", before, storage.Expired{Records: 4, Settled: 1}))
	log := memory.Log()
	for range 4 {
		must(a.t, log.Bury("acme"))
	}
	history := &History{MemoryLog: log}
	var err error
	history.Waiting, err = h.Changes(a.ctx, storage.Change{}, 100)
	must(a.t, err)
	must(a.t, h.View(a.ctx, func(r storage.Reader) error {
		for _, c := range storage.Collections() {
			must(a.t, r.Scan(storage.Query{Kind: c.Kind, Every: true}, func(_ []byte, d storage.Document) (bool, error) {
				history.Documents = append(history.Documents, d)
				return true, nil
			}))
		}
		return nil
	}))
	return history
}

// SeveralChains returns a history of three ledgers, a, b and c. Each has its own chain. All have
// decided for acme in turn. Ledger b has settled the decisions of a. One row of a and its
// settlement by b were removed. Ledger c had announced the removal.
func SeveralChains(t testing.TB) (h *History, chains map[string][16]byte) {
	t.Helper()
	a := author{t, t.Context(), noon}
	memory := storagetest.NewMemory()
	chains = make(map[string][16]byte)
	writers := []string{"a", "b", "c"}
	ledgers := make(map[string]*ledger.Ledger)
	for _, name := range writers {
		s := memory.Open()
		tip, err := s.Tip(a.ctx)
		must(a.t, err)
		chains[name], ledgers[name] = tip.ID, a.ledger(s, name)
	}
	for n := range 9 {
		a.now = noon.Add(time.Duration(n) * time.Minute)
		row := a.decide(ledgers[writers[n%3]], "acme", n, n+1)[0]
		a.decide(ledgers["b"], "acme", n, n+1) // this ledger returns the other ledger's first decision
		if n%3 == 0 {
			a.settle(ledgers["b"], row, storage.Executed)
		}
	}
	must(a.t, ledgers["c"].Retain(a.ctx, "acme", noon.Add(time.Hour), storage.Expired{Records: 1, Settled: 1}))
	log := memory.Log()
	must(a.t, log.Bury("acme"))
	return &History{MemoryLog: log}, chains
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Moved returns a history into which acme was imported from SeveralChains: 7 rows, 2 of them
// settled, and one tombstone. After the import one more row was settled, the oldest was removed,
// and an intent was decided. own is the history's own chain. more is a row of the source that is
// not in the export.
func Moved(t testing.TB) (h *History, own [16]byte, more *storage.Record) {
	t.Helper()
	source, _ := SeveralChains(t)
	more, source.Records = source.Records[len(source.Records)-1], source.Records[:len(source.Records)-1]
	a := author{t, t.Context(), noon.Add(2 * time.Hour)}
	memory := storagetest.NewMemory()
	s := memory.Open()
	for range 6 { // until the chain differs from the source's chains
		s = memory.Open()
	}
	tip, err := s.Tip(a.ctx)
	must(a.t, err)
	l := a.ledger(s, "")
	rows := slices.SortedFunc(slices.Values(source.Records), func(a, b *storage.Record) int { return cmp.Compare(a.DecisionID, b.DecisionID) })
	var tree ledger.ImportTree
	left := *source.Graves[0]
	left.Imported = true
	tree.AddRemoved(&left)
	for _, r := range rows {
		tree.AddRow(r)
	}
	must(a.t, s.Import(a.ctx, "acme", rows, source.Graves))
	_, err = l.SignImport(a.ctx, ledger.Import{
		ID: importID, OrganizationID: "acme", Rows: tree.Rows, Settled: tree.Settled, Removed: tree.Removed, Root: tree.Root(),
	})
	must(a.t, err)
	a.settle(l, rows[3], "failed")
	a.decide(l, "acme", 100, 101)
	a.decide(l, "rival", 1, 2)
	must(a.t, errors.Join(l.Retain(a.ctx, "acme", noon.Add(time.Hour), storage.Expired{Records: 1}), memory.Log().Bury("acme")))
	return &History{MemoryLog: memory.Log()}, tip.ID, more
}

const importID = "01a1fdfb-3060-7000-bdb6-3453771df8f2"
