package mongodb

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

var readerSigner = receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))

// writtenHistory is a database that two handles have filled with the real ledger.
type writtenHistory struct {
	Options
	s    *Store            // a handle that has written nothing
	rows []*storage.Record // acme's rows, newest first
}

// writeHistory writes a history with two handles. The handles decide for two organizations in two
// months, settle decisions and change documents. They remove the old rows of one organization.
func writeHistory(t *testing.T) *writtenHistory {
	t.Helper()
	return writeHistoryOn(t, sharedSet(t))
}

func writeHistoryOn(t *testing.T, set *mongotest.Set) *writtenHistory {
	t.Helper()
	o := newDatabase(t, set)
	now := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	stores := []*Store{openTest(t, o), openTest(t, o)}
	var ledgers []*ledger.Ledger
	for _, s := range stores {
		l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: readerSigner, Scrub: ledgertest.Plain{}, Now: func() time.Time { return now }})
		must(t, err)
		ledgers = append(ledgers, l)
	}
	decide := func(from, to int) {
		for n := from; n < to; n++ {
			for _, org := range []string{"acme", "ri\x00val"} {
				decideOne(t, ledgers[n%2], org, n)
			}
		}
	}
	decide(0, 4)
	now = now.Add(60 * 24 * time.Hour)
	decide(4, 12)
	w := &writtenHistory{Options: o, s: openTest(t, o)}
	rows, _, err := w.s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 100})
	must(t, err)
	w.rows = rows[:8]
	for _, r := range []*storage.Record{rows[2], rows[10]} {
		if _, _, err := ledgers[0].Settle(t.Context(), "acme", r.DecisionID, storage.Settlement{Outcome: "failed", RecordedAt: now}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"a", "b"} {
		if _, err := stores[1].Update(t.Context(), "acme", func(tx storage.Tx) error {
			return storage.Agents.Put(tx, "acme", &engine.Agent{ID: id, ExternalID: "x" + id})
		}); err != nil {
			t.Fatal(err)
		}
	}
	must(t, ledgers[1].SignChanges(t.Context(), stores[1]))
	before := now.Add(-24 * time.Hour)
	most := storage.Expired{Records: 4, Settled: 1}
	must(t, ledgers[1].Retain(t.Context(), "acme", before, most))
	if n, err := stores[1].RemoveRecords(t.Context(), "acme", before, most); n != most || err != nil {
		t.Fatalf("RemoveRecords = %+v, %v, want %+v", n, err, most)
	}
	if _, err := stores[0].Update(t.Context(), "acme", func(tx storage.Tx) error { // this change is not signed yet
		return storage.Rules.Put(tx, "acme", &engine.Rule{ID: "r"})
	}); err != nil {
		t.Fatal(err)
	}
	for _, l := range ledgers {
		must(t, l.Close(t.Context()))
	}
	for _, s := range append(stores, w.s) {
		s.silence(t) // tests change what a beat compares
	}
	return w
}

func decideOne(t *testing.T, l *ledger.Ledger, org string, n int) {
	t.Helper()
	_, err := ledgertest.Commit(t.Context(), l, org, &ledger.Entry{
		Intent: &engine.Intent{
			IntentID: fmt.Sprintf("7d9f1c1e-3b5a-4f5e-8a67-%012d", n), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
			AgentID: "ci", ActionType: "deploy", Resource: "prod/web", IssuedAt: "2026-11-21T11:59:59Z",
		},
		PolicyVersion: 3,
		Result:        engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Outcome: engine.Allow, Reason: "policy.allowed: yes"}}},
	})
	must(t, err)
}

func (w *writtenHistory) prove(t *testing.T) (ledger.Proof, error) {
	t.Helper()
	keys, err := receipt.NewKeys(readerSigner.Public())
	must(t, err)
	r, err := OpenSnapshot(t.Context(), w.Options)
	must(t, err)
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	return ledger.Prove(t.Context(), r, ledger.ProveConfig{Keys: keys})
}

func (w *writtenHistory) chains(t *testing.T) [][16]byte {
	t.Helper()
	chains, err := w.s.chains(t.Context())
	must(t, err)
	return chains
}

// count adds the decisions under the heads of chains to the meters.
func (w *writtenHistory) count(t *testing.T, chains ...[16]byte) {
	t.Helper()
	for _, chain := range chains {
		must(t, w.s.countChain(t.Context(), chain, true))
	}
}

func TestSnapshot_WholeHistory(t *testing.T) {
	w := writeHistory(t)
	got, err := w.prove(t)
	if err != nil {
		t.Fatalf("Prove = %v", err)
	}
	if got.Rows != 20 || got.Organizations != 2 || len(got.Ends) != 2 || got.Settled != 1 || got.Changes != 2 || got.Removals != 1 ||
		got.Removed != 4 || got.Waiting != 1 {
		t.Errorf("Prove = %+v, want 20 rows of 2 organizations in 2 chains, 1 settled, 2 changes, 4 removed by 1 removal, 1 change that waits", got)
	}
	w.count(t, w.chains(t)...) // adds the decisions to the meters
	if again, err := w.prove(t); err != nil || again.Rows != got.Rows {
		t.Errorf("Prove of meters that are counted = %+v, %v", again, err)
	}
}

// TestForget checks that a history is whole after its removed intents were forgotten, and that an export says up to
// when they were issued. Without the leaf of a
// forgotten decision the history is broken.
func TestForget(t *testing.T) {
	w := writeHistory(t)
	before, err := w.prove(t)
	must(t, err)
	export := func() transfer.Header {
		t.Helper()
		r, err := OpenSnapshot(t.Context(), w.Options)
		must(t, err)
		defer func() { must(t, r.Close()) }()
		f, err := os.Create(filepath.Join(t.TempDir(), "export"))
		must(t, err)
		defer f.Close()
		footer, err := transfer.Export(t.Context(), r, f, transfer.ExportConfig{Organization: "acme", Keys: keysOfReader(t), Now: time.Now})
		must(t, err)
		data, err := os.ReadFile(f.Name())
		must(t, err)
		var first struct{ Header transfer.Header }
		line, _, _ := bytes.Cut(data, []byte("\n"))
		must(t, json.Unmarshal(line, &first))
		if want := int64(4); first.Header.Forgotten.IsZero() != (footer.Removed == want) {
			t.Errorf("the export has %d removed rows, and its store has forgotten what was issued before %v", footer.Removed, first.Header.Forgotten)
		}
		return first.Header
	}
	export()
	_, err = w.s.Update(t.Context(), "", func(tx storage.Tx) error {
		age := new(storage.IntentAge)
		age.Set(time.Hour, time.Now())
		return storage.IntentAges.Put(tx, "", age)
	})
	must(t, err)
	from, to := time.Unix(0, 0), time.Now()
	if n, err := w.s.Forget(t.Context(), "acme", from, to, 100); n != 4 || err != nil {
		t.Fatalf("Forget = %d, %v, want 4", n, err)
	}
	after, err := w.prove(t)
	if err != nil || after.Removed != 4 || after.Rows != before.Rows || after.NewestRemoved != before.NewestRemoved {
		t.Errorf("Prove = %+v, %v, want what it was before, %+v", after, err, before)
	}
	newest, _ := storage.ParseID(before.NewestRemoved)
	if got, want := export().Forgotten, storage.IDTime(newest).Add(time.Hour+storage.MaxSkew); !got.Equal(want) {
		t.Errorf("the export's store has forgotten what was issued before %v, want %v", got, want)
	}
	_, err = w.s.db.Collection(forgottenName).UpdateOne(t.Context(), doc(), doc("$pop", doc(forgottenLeft, 1)))
	must(t, err)
	if _, err := w.prove(t); err == nil {
		t.Error("Prove without the leaf of a forgotten decision = nil, want a break")
	}
}

func keysOfReader(t *testing.T) receipt.Keys {
	t.Helper()
	keys, err := receipt.NewKeys(readerSigner.Public())
	must(t, err)
	return keys
}

// TestSnapshot_ReadsOneState checks that a proof reads one state although the history grows during
// the proof.
func TestSnapshot_ReadsOneState(t *testing.T) {
	w := writeHistory(t)
	r, err := OpenSnapshot(t.Context(), w.Options)
	must(t, err)
	l, err := ledger.Open(t.Context(), ledger.Config{Store: w.s, Signer: readerSigner, Scrub: ledgertest.Plain{}})
	must(t, err)
	decideOne(t, l, "acme", 100)
	keys, err := receipt.NewKeys(readerSigner.Public())
	must(t, err)
	got, err := ledger.Prove(t.Context(), r, ledger.ProveConfig{Keys: keys})
	if err := errors.Join(err, l.Close(t.Context()), r.Close()); err != nil || got.Rows != 20 {
		t.Errorf("Prove = %+v, %v, want the 20 rows that were there", got, err)
	}
	if got, err := w.prove(t); err != nil || got.Rows != 21 {
		t.Errorf("Prove = %+v, %v, want 21 rows", got, err)
	}
}

// slowReader is a snapshot whose reader first needs longer for a row than the server keeps a state.
type slowReader struct {
	*Snapshot
	t    *testing.T
	keep func(seconds int) // sets how long the server keeps a state
	slow atomic.Int64      // how many calls are slow
	mu   sync.Mutex        // held while the server keeps it for a moment
}

var errEnough = errors.New("enough")

func (r *slowReader) EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error {
	if r.slow.Add(-1) < 0 {
		return r.Snapshot.EachRow(ctx, org, after, upTo, f)
	}
	err := r.Snapshot.EachRow(ctx, org, after, upTo, func(row *storage.Record) error {
		after = row.DecisionID
		if err := f(row); err != nil {
			return err
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(2)
	defer r.keep(300)
	await(r.t, "the end of the state", func() bool {
		err = r.Snapshot.EachRow(ctx, org, after, upTo, func(*storage.Record) error { return nil })
		return err != nil
	})
	return err
}

// TestSnapshot_BeyondTheServersWindow proves and exports a history that takes longer to read than the server keeps a
// state. Both must go on with a newer state by themselves.
func TestSnapshot_BeyondTheServersWindow(t *testing.T) {
	t.Parallel()
	set := mongotest.For(t, 1)
	w := writeHistoryOn(t, set)
	keep := func(seconds int) {
		must(t, set.Admin(t.Context(), doc("setParameter", 1, "minSnapshotHistoryWindowInSeconds", seconds)))
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // the server forgets a state once there are later writes
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				_, _ = w.s.client.Database("ballast").Collection("rows").InsertOne(context.Background(), doc("_id", n))
			}
		}
	}()
	keys, err := receipt.NewKeys(readerSigner.Public())
	must(t, err)
	begin := func() *slowReader {
		r, err := OpenSnapshot(t.Context(), w.Options)
		must(t, err)
		t.Cleanup(func() { must(t, r.Close()) })
		slow := &slowReader{Snapshot: r, t: t, keep: keep}
		slow.slow.Store(2)
		return slow
	}
	proof, err := ledger.Prove(t.Context(), begin(), ledger.ProveConfig{Keys: keys})
	if err != nil || proof.Rows != 20 || proof.Renewed == 0 {
		t.Errorf("Prove = %+v, %v, want 20 rows of several states", proof, err)
	}
	export := func(src transfer.Source) []byte {
		t.Helper()
		f, err := os.Create(filepath.Join(t.TempDir(), "export"))
		must(t, err)
		defer f.Close()
		_, err = transfer.Export(t.Context(), src, f, transfer.ExportConfig{Organization: "acme", Keys: keys, Now: time.Now})
		must(t, err)
		data, err := os.ReadFile(f.Name())
		must(t, err)
		var same []byte
		for line := range bytes.Lines(data) { // the others have the id of the export
			if bytes.Contains(line, []byte(`"row"`)) || bytes.Contains(line, []byte(`"removed":{`)) {
				same = append(same, line...)
			}
		}
		return same
	}
	one, err := OpenSnapshot(t.Context(), w.Options)
	must(t, err)
	defer func() { must(t, one.Close()) }()
	want := export(one)
	if got := export(begin()); !bytes.Equal(got, want) || bytes.Count(got, []byte("\n")) != 12 {
		t.Errorf("an export of several states is\n%s\nwant that of one\n%s", got, want)
	}
}

func TestOpenSnapshot_OfAnotherDatabase(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	if _, err := OpenSnapshot(t.Context(), o); err == nil || !strings.Contains(err.Error(), "check the URI and the name of the database") {
		t.Errorf("OpenSnapshot of a database that is not there = %v, want what to do", err)
	}
}

// TestCheckIndex checks that CheckIndex finds forged documents. Only a forger with write access to
// the database can make these changes. Other tests cover changes that are possible in any store.
func TestCheckIndex(t *testing.T) {
	w := writeHistory(t)
	chains := w.chains(t)
	w.count(t, chains[1])
	uncounted := bson.D{{Key: "_id.c", Value: chains[0][:]}, {Key: "_id.s", Value: int64(1)}}
	row := bson.D{{Key: "_id", Value: keyOf(t, "acme", w.rows[3].IntentID, "")}}
	set := func(e ...bson.E) bson.D { return bson.D{{Key: "$set", Value: bson.D(e)}} }
	inc := func(field string, n any) bson.D { return bson.D{{Key: "$inc", Value: bson.D{{Key: field, Value: n}}}} }
	first := bson.D{}
	ofAcme := bson.D{{Key: "o", Value: "acme"}}
	grave := bson.D{{Key: "g", Value: bson.D{{Key: "$exists", Value: true}}}}
	agent := bson.D{{Key: "_id", Value: documentKey(storage.CollectionOf(storage.AgentKind), "acme", "a")}}
	for name, test := range map[string]struct {
		collection string
		which      bson.D
		update     bson.D // nil deletes the document
		want       string
	}{
		"a row has no id":                      {recordsName, row, bson.D{{Key: "$unset", Value: bson.D{{Key: "d", Value: ""}}}}, "its id is not of the time"},
		"a row is another organization's":      {recordsName, row, set(bson.E{Key: "o", Value: "other"}), "row of"},
		"a row has a field that nobody reads":  {recordsName, row, set(bson.E{Key: "zz", Value: "x"}), "does not know"},
		"a row is hidden from lists":           {recordsName, row, bson.D{{Key: "$unset", Value: bson.D{{Key: "o", Value: ""}}}}, "row of"},
		"a row became a tombstone":             {recordsName, row, bson.D{{Key: "$rename", Value: bson.D{{Key: "d", Value: "g"}}}, {Key: "$unset", Value: bson.D{{Key: "o", Value: ""}}}}, "leaves are left of it"},
		"a tombstone has another id":           {recordsName, grave, set(bson.E{Key: "g", Value: make([]byte, 16)}), "its meter of"},
		"a head is cut short":                  {headsName, bson.D{{Key: "_id.s", Value: int64(1)}}, set(bson.E{Key: "h", Value: []byte{1}}), "malformed"},
		"a chain is gone":                      {replicasName, bson.D{{Key: "_id", Value: int64(1)}}, nil, "of which the history has no head"},
		"a head says more of a meter":          {headsName, uncounted, inc("m.0.n", int64(1)), "its meter of"},
		"a chain is counted that is not there": {countersName, bson.D{{Key: "_id", Value: bson.D{{Key: "$regex", Value: "^counted:"}}}}, inc("n", int64(1000)), "the meters count"},
		"a meter is another's":                 {quotasName, ofAcme, set(bson.E{Key: "m", Value: int32(202601)}), "in the place of another"},
		"an agent is gone":                     {documentsName, agent, nil, "the index has"},
		"an agent is of a later revision":      {documentsName, agent, set(bson.E{Key: "r", Value: int64(99)}), "and the last is"},
		"an index key is gone":                 {indexName, first, nil, "is not found as the index has it"},
		"an index key leads to another":        {indexName, first, set(bson.E{Key: "d", Value: "x"}), "is not found as the index has it"},
		"revisions are set back":               {countersName, bson.D{{Key: "_id", Value: orderOf("acme")}}, inc("n", int64(-1)), "and the last is"},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.s.db.Collection(test.collection)
			var before bson.Raw
			must(t, c.FindOne(t.Context(), test.which).Decode(&before))
			id := bson.D{{Key: "_id", Value: before.Lookup("_id")}}
			var err error
			if test.update == nil {
				_, err = c.DeleteOne(t.Context(), id)
			} else {
				_, err = c.UpdateOne(t.Context(), id, test.update)
			}
			must(t, err)
			_, err = w.prove(t)
			if broken := (*storage.BreakError)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Prove = %v, want a break with %q", err, test.want)
			}
			if _, err := c.DeleteOne(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if _, err := c.InsertOne(t.Context(), before); err != nil {
				t.Fatal(err)
			}
		})
	}
	if _, err := w.prove(t); err != nil {
		t.Errorf("Prove of what was mended = %v", err)
	}
}

// TestSnapshot_TwoRowsOfAnID checks that a proof reports a second row with the same id. The proof
// divides the rows into ranges, and the test tries every possible division.
func TestSnapshot_TwoRowsOfAnID(t *testing.T) {
	w := writeHistory(t)
	c := w.s.records()
	for n, row := range w.rows {
		which := doc("_id", keyOf(t, "acme", row.IntentID, ""))
		var stored bson.D
		must(t, c.FindOne(t.Context(), which).Decode(&stored))
		forged := slices.Clone(stored)
		forged[0].Value = keyOf(t, "acme", fmt.Sprintf("8d9f1c1e-3b5a-4f5e-8a67-%012d", n), "")
		// In the index of ids, the forged row comes before the real row in one case and after it in
		// the other.
		for _, both := range [][]any{{stored, forged}, {forged, stored}} {
			if _, err := c.DeleteOne(t.Context(), which); err != nil {
				t.Fatal(err)
			}
			if _, err := c.InsertMany(t.Context(), both); err != nil {
				t.Fatal(err)
			}
			if _, err := w.prove(t); err == nil {
				t.Errorf("Prove with a second row of decision %d = nil, want a break", n)
			}
			if _, err := c.DeleteOne(t.Context(), doc("_id", forged[0].Value)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
