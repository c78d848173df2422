package transfer_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

const rows = 40

// TestRoundTrip exports and imports an organization between every two kinds of store.
func TestRoundTrip(t *testing.T) {
	trip := func(name string, from, to func() place) {
		t.Run(name, func(t *testing.T) { roundTrip(t, from(), to()) })
	}
	memory := func(key byte) func() place { return func() place { return inMemory(key) } }
	trip("embedded to embedded", memory(1), memory(2))
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	mongo := func(key byte) func() place { return func() place { return inMongoDB(set, key) } }
	trip("embedded to MongoDB", memory(1), mongo(2))
	trip("MongoDB to embedded", mongo(1), memory(2))
	trip("MongoDB to MongoDB", mongo(1), mongo(2))
}

func roundTrip(t *testing.T, from, to place) {
	answers := from.fill(t, rows)
	file, footer := from.export(t)
	if want := (transfer.Footer{Rows: rows, Settled: 10, Removed: 5, Documents: 8, Root: footer.Root, Digest: footer.Digest}); footer != want {
		t.Errorf("Export = %+v, want %+v", footer, want)
	}
	before := wantWhole(t, from, keysOf(t, 1))
	// The target already has another organization.
	to.with(t, noon, func(s storage.Store, l *ledger.Ledger) {
		if _, err := decide(t.Context(), l, "other", 1); err != nil {
			t.Fatal(err)
		}
	})
	imported, err := to.importInto(t, file, keysOf(t, 1))
	if err != nil || imported.Rows != rows || imported.Root != footer.Root {
		t.Fatalf("Import = %+v, %v, want %d rows and root %s", imported, err, rows, footer.Root)
	}
	after := wantWhole(t, to, keysOf(t, 1, 2))
	if want := (ledger.Foreign{Organizations: 1, Rows: rows, Settled: 10, Removed: 5}); after.Foreign != want || after.Rows != rows+1 || before.Rows != 2*rows+5 {
		t.Errorf("Prove = %+v of %d rows, want %+v", after.Foreign, after.Rows, want)
	}
	to.with(t, noon.Add(4*time.Hour), func(s storage.Store, l *ledger.Ledger) { wantInUse(t, s, l, answers) })
	wantWhole(t, to, keysOf(t, 1, 2))

	again, err := to.importInto(t, file, keysOf(t, 1))
	if err != nil || again != imported {
		t.Errorf("Import again = %+v, %v, want %+v", again, err, imported)
	}
	// The target's rows have two chains. They are exported to a third store.
	second, next := to.export(t)
	if next.Rows != rows-1 || next.Removed != 7 {
		t.Errorf("Export of what was imported = %+v, want %d rows and 7 removed ones", next, rows-1)
	}
	third := inMemory(3)
	third.mustImport(t, second, keysOf(t, 1, 2))
	proof := wantWhole(t, third, keysOf(t, 1, 2, 3))
	if want := (ledger.Foreign{Organizations: 1, Rows: rows - 1, Settled: int(next.Settled), Removed: 7}); proof.Foreign != want {
		t.Errorf("Prove = %+v, want %+v", proof.Foreign, want)
	}
}

func wantWhole(t *testing.T, p place, keys receipt.Keys) ledger.Proof {
	t.Helper()
	proof, err := p.prove(t, keys)
	if err != nil || len(proof.Unfinished) > 0 {
		t.Fatalf("Prove = %v, unfinished %q, want it whole", err, proof.Unfinished)
	}
	return proof
}

// wantInUse checks imported rows with the calls that the API makes. answers has the answers of the
// source.
func wantInUse(t *testing.T, s storage.Store, l *ledger.Ledger, answers map[int]string) {
	t.Helper()
	for n, want := range answers {
		out, err := decide(t.Context(), l, "acme", n)
		if n < 5 {
			if !errors.Is(err, ledger.ErrIntentExpired) {
				t.Errorf("intent %d, removed at the source = %+v, %v, want ErrIntentExpired", n, out, err)
			}
			continue
		}
		if err != nil || !out.Replayed || out.Record.DecisionID+out.Record.Receipt.Sig != want {
			t.Errorf("intent %d = %+v, %v, want the source's decision", n, out, err)
		}
	}
	list, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	if err != nil || len(list) != rows {
		t.Fatalf("ListRecords = %d rows, %v, want %d", len(list), err, rows)
	}
	if n, err := s.Metered(t.Context(), "acme", storage.MonthOf(noon)); n != 0 || err != nil {
		t.Errorf("Metered = %d, %v, want 0", n, err)
	}
	for _, r := range list {
		if r.Settlement == nil {
			if _, _, err := l.Settle(t.Context(), "acme", r.DecisionID, storage.Settlement{Outcome: "failed", RecordedAt: noon.Add(2 * time.Hour)}); err != nil {
				t.Errorf("Settle = %v", err)
			}
			break
		}
	}
	if out, err := decide(t.Context(), l, "acme", 1000); err != nil || out.Replayed {
		t.Errorf("a new intent = %+v, %v", out, err)
	}
	docs := registry.New(s)
	if p, err := docs.Policy(t.Context(), "acme", policyID); err != nil || p.Version != 2 {
		t.Errorf("Policy = %+v, %v, want version 2", p, err)
	}
	if k, err := docs.Token(t.Context(), keyID); err != nil || k.OrganizationID != "acme" {
		t.Errorf("Token = %+v, %v", k, err)
	}
	if keys, err := docs.PublicKeys(t.Context()); err != nil || len(keys.Only(signerOf(1).KeyID()).IDs()) == 0 {
		t.Errorf("PublicKeys = %q, %v, want the source's", keys.IDs(), err)
	}
	changes, _, err := s.Entries(t.Context(), "acme", storage.ChangeEntry, storage.Page{Limit: 100})
	for _, e := range changes {
		if c, err := ledger.ParseChange(e); err != nil || c.Actor != transfer.Actor {
			t.Errorf("a change = %+v, %v, want one of the import's", c, err)
		}
	}
	if len(changes) < 7 || err != nil {
		t.Errorf("there are %d changes, %v, want those of all documents", len(changes), err)
	}
	retain(t, s, l)
}

// TestImport_OfForgottenDecisions imports from a store that has forgotten removed decisions. The target must refuse
// their intents, too, and so must a store that imports from the target.
func TestImport_OfForgottenDecisions(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	from, to := inMongoDB(mongotest.For(t, 1), 1), inMemory(2)
	from.fill(t, rows)
	setAge := func(s storage.Store, age storage.IntentAge) {
		_, err := s.Update(t.Context(), "", func(tx storage.Tx) error { return storage.IntentAges.Put(tx, "", &age) })
		must(t, err)
	}
	forgotten := 0
	from.with(t, noon.Add(4*time.Hour), func(s storage.Store, _ *ledger.Ledger) {
		age := storage.IntentAge{}
		age.Set(time.Hour, noon)
		setAge(s, age)
		var err error
		forgotten, err = s.(storage.Forgetter).Forget(t.Context(), "acme", time.Unix(0, 0), noon.AddDate(1, 0, 0), 100)
		must(t, err)
	})
	file, footer := from.export(t)
	if forgotten == 0 || footer.Removed != int64(5-forgotten) {
		t.Errorf("the export has %d removed rows, and %d of 5 are forgotten", footer.Removed, forgotten)
	}
	const want = "this store would decide them again: serve it with an --intent-age of at most"
	if _, err := to.importInto(t, file, keysOf(t, 1)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Import without an age = %v, want %q", err, want)
	}
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		setAge(s, storage.IntentAge{MostMS: time.Hour.Milliseconds(), Before: noon.AddDate(1, 0, 0)})
	})
	to.mustImport(t, file, keysOf(t, 1))
	wantWhole(t, to, keysOf(t, 1, 2))
	file, _ = to.export(t)
	if _, err := inMemory(3).importInto(t, file, keysOf(t, 1, 2)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Import of what was imported, without an age = %v, want %q", err, want)
	}
}

// retain removes the two oldest rows of acme.
func retain(t *testing.T, s storage.Store, l *ledger.Ledger) {
	t.Helper()
	settled := 0
	all, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	for _, r := range all[len(all)-2:] {
		if r.Settlement != nil {
			settled++
		}
	}
	most := storage.Expired{Records: 2, Settled: settled}
	if err == nil {
		err = l.Retain(t.Context(), "acme", noon.Add(3*time.Hour), most)
	}
	if err == nil {
		_, err = s.RemoveRecords(t.Context(), "acme", noon.Add(3*time.Hour), most)
	}
	must(t, err)
}

// TestExport_Resumed checks that an export that continues a cut file gives the same file.
// The file is cut at any place, and the source decides more intents in between.
func TestExport_Resumed(t *testing.T) {
	from, file, footer := exported(t, rows)
	whole := readFile(t, file)
	if again, err := from.exportTo(t, file); again != footer || err != nil {
		t.Errorf("Export of a whole file = %+v, %v, want %+v", again, err, footer)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	from.with(t, noon.Add(2*time.Hour), func(_ storage.Store, l *ledger.Ledger) {
		if _, err := decide(t.Context(), l, "acme", 2000); err != nil {
			t.Fatal(err)
		}
	})
	end := 0
	for i, line := range lines {
		for _, cut := range []int{end, end + 1, end + len(line)/2, end + len(line) - 1} {
			if i == 0 && cut < len(lines[0]) || cut < 0 || cut >= len(whole) {
				continue // the file would begin another export
			}
			must(t, os.WriteFile(file, whole[:cut], 0o600))
			got, err := from.exportTo(t, file)
			data, readErr := os.ReadFile(file)
			if err != nil || readErr != nil || got != footer || string(data) != string(whole) {
				t.Fatalf("Export after %d bytes, of line %d = %+v, %v, want %+v\n%s", cut, i+1, got, err, footer, cmp.Diff(string(whole), string(data)))
			}
		}
		end += len(line)
	}
	must(t, os.WriteFile(file, whole[:10], 0o600))
	if got, err := from.exportTo(t, file); err != nil || got.Rows != rows+1 {
		t.Errorf("Export after half a header = %+v, %v, want one that begins anew", got, err)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(whole), `"bot"`, `"tob"`, 1)), 0o600))
	if got, err := from.exportTo(t, file); err == nil {
		t.Errorf("Export of a changed file = %+v, want an error", got)
	}
}

// TestExport_Nothing checks that the export of an unknown organization is an error.
func TestExport_Nothing(t *testing.T) {
	from := inMemory(1)
	from.with(t, noon, func(storage.Store, *ledger.Ledger) {})
	if _, err := from.exportTo(t, t.TempDir()+"/none"); !errors.Is(err, transfer.ErrNothing) {
		t.Errorf("Export = %v, want ErrNothing", err)
	}
}

// dying is a store that fails forever after some calls.
type dying struct {
	storage.Store
	left int
}

var errDead = errors.New("dead")

func (d *dying) call() error {
	if d.left--; d.left < 0 {
		return errDead
	}
	return nil
}

func (d *dying) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := d.call(); err != nil {
		return err
	}
	return d.Store.Import(ctx, org, rows, removed)
}

func (d *dying) RemoveImported(ctx context.Context, org string, most int) (int, error) {
	if err := d.call(); err != nil {
		return 0, err
	}
	return d.Store.RemoveImported(ctx, org, most)
}

func (d *dying) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if err := d.call(); err != nil {
		return 0, err
	}
	return d.Store.Update(ctx, org, f)
}

func (d *dying) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	if err := d.call(); err != nil {
		return storage.Batch{}, err
	}
	return d.Store.Append(ctx, batch, seal)
}

// TestImport_Interrupted checks imports that fail after any of their writes. A second run
// of the import has the same result as one run without a failure. Until the second run
// the history says that the import is not finished.
func TestImport_Interrupted(t *testing.T) {
	_, file, footer := exported(t, 2500) // the rows are stored in several runs
	for n, done := 0, false; !done; n++ {
		to := inMemory(2)
		s := &dying{Store: to.open(t), left: n}
		first, err := to.importFile(t, s, file, keysOf(t, 1))
		if done = err == nil; !done && !errors.Is(err, errDead) {
			t.Fatalf("Import with %d writes = %v, want that it is dead", n, err)
		}
		must(t, s.Close())
		proof, err := to.prove(t, keysOf(t, 1, 2))
		if err != nil {
			t.Fatalf("Prove after %d writes = %v", n, err)
		}
		signed := proof.Foreign.Organizations == 1
		if n > 1 && !signed && (len(proof.Unfinished) != 1 || proof.Unfinished[0] != "acme") {
			t.Errorf("Prove after %d writes = %q unfinished, want acme", n, proof.Unfinished)
		}
		again, err := to.importInto(t, file, keysOf(t, 1))
		if err != nil || again.Root != footer.Root || signed && first != again && done {
			t.Fatalf("Import after %d writes = %+v, %v, want %+v", n, again, err, first)
		}
		proof = wantWhole(t, to, keysOf(t, 1, 2))
		if want := (ledger.Foreign{Organizations: 1, Rows: 2500, Settled: int(footer.Settled), Removed: 5}); proof.Foreign != want || proof.Waiting > 0 {
			t.Fatalf("Prove after %d writes and another import = %+v, %d changes waiting; want %+v", n, proof.Foreign, proof.Waiting, want)
		}
		if n > 50 {
			t.Fatal("an import takes more than 50 writes")
		}
	}
}
