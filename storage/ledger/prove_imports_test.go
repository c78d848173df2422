package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"writ/engine"
	"writ/storage"
	"writ/storage/storagetest"
)

// byID sorts rows, and what is left of them, by their ids.
func byID(a, b *storage.Record) int { return cmp.Compare(a.DecisionID, b.DecisionID) }

// movedHistory is a history into which acme was imported from severalChains: 8 rows, 2
// of them settled there, and what is left of one. Since then one more was settled, the
// oldest is removed, and an intent is decided. With it come a row of the source's that
// the export does not have and the import as it is signed.
func movedHistory(t *testing.T) (log *storagetest.MemoryLog, own [16]byte, more *storage.Record, signed Import) {
	t.Helper()
	source, _ := severalChains(t)
	more, source.Records = source.Records[len(source.Records)-1], source.Records[:len(source.Records)-1]
	log = storagetest.NewMemoryLog()
	h := fakeOn(log)
	for range 6 { // whose chain is none of the source's
		h = fakeOn(log)
	}
	tip, err := h.Tip(t.Context())
	must(t, err)
	now := &clock{now: noon.Add(2 * time.Hour)}
	l := open(t, h, func(c *Config) { c.Now = now.Now })
	rows := slices.SortedFunc(slices.Values(source.Records), byID)
	var tree Tree
	left := *source.Graves[0]
	left.Imported = true
	tree.AddRemoved(&left)
	for _, r := range rows {
		tree.AddRow(r)
	}
	must(t, h.Import(t.Context(), "acme", rows, source.Graves))
	signed, err = l.SignImport(t.Context(), Import{
		ID: "01a1fdfb-3060-7000-bdb6-3453771df8f2", OrganizationID: "acme", Rows: tree.Rows, Settled: tree.Settled, Removed: tree.Removed, Root: tree.Root(),
	})
	if err == nil {
		_, _, err = l.Settle(t.Context(), "acme", rows[3].DecisionID, storage.Settlement{Outcome: "failed", RecordedAt: now.Now()})
	}
	if err == nil {
		_, err = decide(t.Context(), l, "acme", entry(intent(100), engine.Allow))
	}
	if err == nil {
		_, err = decide(t.Context(), l, "rival", entry(intent(1), engine.Allow))
	}
	if err == nil {
		err = l.Retain(t.Context(), "acme", noon.Add(time.Hour), storage.Expired{Records: 1})
	}
	if err == nil {
		err = log.Bury("acme")
	}
	must(t, err)
	return log, tip.ID, more, signed
}

func TestProve_Imports(t *testing.T) {
	log, _, _, signed := movedHistory(t)
	got, err := proveLog(t, log)
	want := Foreign{Organizations: 1, Rows: 6, Settled: 2, Removed: 1}
	if err != nil || got.Foreign != want || got.Rows != 8 || len(got.Unfinished) > 0 {
		t.Errorf("Prove = %+v, %v, want %+v of 8 rows", got, err, want)
	}
	if signed.Rows != 7 || signed.Settled != 2 || signed.Removed != 1 || !signed.ImportedAt.Equal(noon.Add(2*time.Hour)) {
		t.Errorf("the import is signed as %+v", signed)
	}
	if _, err := Prove(t.Context(), log, ProveConfig{Keys: testKeys(t, testSigner(2))}); err == nil {
		t.Error("Prove with other keys = nil, want an error")
	}
}

// TestProve_Imports_SettlementWithoutReceipt: no import brings one.
func TestProve_Imports_SettlementWithoutReceipt(t *testing.T) {
	log, _, _, _ := movedHistory(t)
	i := slices.IndexFunc(log.Records, func(r *storage.Record) bool { return r.Settlement == nil })
	r := *log.Records[i]
	r.Settle(storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(time.Hour)})
	log.Records[i] = &r
	if _, err := proveLog(t, log); err == nil || !strings.Contains(err.Error(), "its settlement has no receipt") {
		t.Errorf("Prove = %v, want a break", err)
	}
}

// unfinishedLog is a history with the document of an import.
type unfinishedLog struct{ *storagetest.MemoryLog }

var openImport = storage.Document{Kind: storage.ImportKind, Org: "acme", Revision: 1, Value: []byte(`{"id":"x"}`)}

func (unfinishedLog) Scan(_ storage.Query, f func([]byte, storage.Document) (bool, error)) error {
	_, err := f(nil, openImport)
	return err
}

func (unfinishedLog) Get(storage.Kind, string, string) (storage.Document, error) {
	return openImport, nil
}

func (u unfinishedLog) View(_ context.Context, f func(storage.Reader) error) error { return f(u) }

func (unfinishedLog) Changes(_ context.Context, after uint64, _ int) ([]storage.Change, error) {
	if after > 0 {
		return nil, nil
	}
	return []storage.Change{{Kind: storage.ImportKind, Org: "acme", Revision: 1, Digest: sha256.Sum256(openImport.Value)}}, nil
}

func (u unfinishedLog) CheckIndex(ctx context.Context, read storage.IndexCheck) error {
	return errors.Join(read.Document(openImport, ""), u.MemoryLog.CheckIndex(ctx, read))
}

// TestProve_Imports_Unfinished: rows without an import entry are no break where an
// import is under way, and it is said.
func TestProve_Imports_Unfinished(t *testing.T) {
	source, _ := severalChains(t)
	log := storagetest.NewMemoryLog()
	h := log.OpenLog()
	must(t, h.Import(t.Context(), "acme", source.Records[3:], source.Graves))
	got, err := Prove(t.Context(), unfinishedLog{log}, ProveConfig{Keys: testKeys(t, testSigner(1))})
	if err != nil || !slices.Equal(got.Unfinished, []string{"acme"}) {
		t.Errorf("Prove = %+v, %v, want acme's to be unfinished", got, err)
	}
	if _, err := proveLog(t, log); err == nil || !strings.Contains(err.Error(), "no import entry is of the organization") {
		t.Errorf("Prove without an import under way = %v, want a break", err)
	}
	log, _, _, _ = movedHistory(t)
	if got, err := Prove(t.Context(), unfinishedLog{log}, ProveConfig{Keys: testKeys(t, testSigner(1))}); err != nil || len(got.Unfinished) > 0 {
		t.Errorf("Prove of an import that is signed = %+v, %v, want none unfinished", got, err)
	}
	i := slices.IndexFunc(log.Others, func(e *storage.Entry) bool { return e.Kind == storage.ImportEntry })
	two := imports{orgs: make(map[string]*imported)}
	if err := two.entry(log.Others[i]); err != nil {
		t.Errorf("an import entry = %v", err)
	}
	if err := two.entry(log.Others[i]); err == nil {
		t.Error("another import entry of an organization = nil, want an error")
	}
}

func TestSignImport_Once(t *testing.T) {
	store := newFake()
	now := &clock{now: noon}
	l := open(t, store, func(c *Config) { c.Now = now.Now })
	var tree Tree
	i := Import{ID: "01a1fdfb-3060-7000-bdb6-3453771df8f2", OrganizationID: "acme", Root: tree.Root()}
	first, err := l.SignImport(t.Context(), i)
	if err != nil || !first.ImportedAt.Equal(noon) {
		t.Fatalf("SignImport = %+v, %v", first, err)
	}
	now.set(noon.Add(time.Hour))
	if again, err := l.SignImport(t.Context(), i); err != nil || again != first {
		t.Errorf("SignImport again = %+v, %v, want %+v", again, err, first)
	}
	i.Rows++
	if _, err := l.SignImport(t.Context(), i); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("SignImport of other rows = %v, want a conflict", err)
	}
}
