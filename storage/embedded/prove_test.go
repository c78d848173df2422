package embedded

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/receipt"
)

func signerOf(seed byte) *receipt.Signer {
	return receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

// written is a closed store that the real ledger has filled.
type written struct {
	disk   *vfs.MemFS
	keys   receipt.Keys
	older  *vfs.MemFS         // a copy of the disk before the last decisions
	anchor receipt.SignedHead // the last head
	grave  key                // the intent of a removed and settled row
	policy string             // the key of the first policy change of acme
	acme   []*storage.Record  // the rows of acme that were not removed, oldest first
}

// writeHistory writes a history with the ledger. Several organizations decide in two months. The
// history has replays, settlements and a change of the key. Retention has removed four rows of
// acme.
func writeHistory(t *testing.T) written {
	t.Helper()
	w := written{disk: vfs.NewCrashableMem()}
	now := time.Date(2026, 10, 31, 23, 58, 0, 0, time.UTC)
	write := func(seed byte, f func(*Store, *ledger.Ledger)) {
		w.change(t, func(s *Store) {
			l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(seed), Scrub: ledgertest.Plain{}, Now: func() time.Time { return now }})
			must(t, err)
			f(s, l)
			must(t, l.Close(t.Context()))
		})
	}
	decide := func(seed byte, from, to int) {
		write(seed, func(_ *Store, l *ledger.Ledger) {
			var wg sync.WaitGroup
			for n := from; n < to; n++ {
				for range 2 { // the second call is a replay
					wg.Go(func() {
						for _, org := range []string{"acme", "ac", "rival"} {
							decideOne(t, l, org, n)
						}
					})
				}
			}
			wg.Wait()
		})
	}
	decide(1, 0, 4)
	now = now.Add(30 * 24 * time.Hour)
	decide(1, 4, 10)
	w.older = w.disk.CrashClone(vfs.CrashCloneCfg{})
	now = now.Add(time.Hour)
	decide(2, 10, 16)
	write(2, func(s *Store, l *ledger.Ledger) {
		w.acme = listed(t, s, "acme")
		slices.Reverse(w.acme)
		for i, outcome := range map[int]string{0: "failed", 11: storage.Executed, 14: "failed", 15: storage.Executed} {
			var err error
			if w.acme[i], _, err = l.Settle(t.Context(), "acme", w.acme[i].DecisionID, storage.Settlement{Outcome: outcome, RecordedAt: now}); err != nil {
				t.Fatal(err)
			}
		}
		w.policy = changeDocuments(t, s)
		must(t, l.SignChanges(t.Context(), s))
		before := now.Add(-24 * time.Hour)
		must(t, l.Retain(t.Context(), "acme", before, storage.Expired{Records: 4, Settled: 1}))
		if n, err := s.RemoveRecords(t.Context(), "acme", before, storage.Expired{Records: 100, Settled: 1}); n.Records != 4 || n.Settled != 1 || err != nil {
			t.Fatalf("RemoveRecords = %+v, %v, want 4, of which 1 is settled", n, err)
		}
		w.grave, w.acme = orgKey(kindIntent, "acme").text(w.acme[0].IntentID), w.acme[4:]
		var err error
		w.anchor, err = s.lastHead()
		must(t, err)
	})
	keys, err := receipt.NewKeys(signerOf(1).Public(), signerOf(2).Public())
	must(t, err)
	w.keys = keys
	return w
}

// changeDocuments changes documents, first a policy of acme. It returns the key of the entry of
// this first change.
func changeDocuments(t *testing.T, s *Store) string {
	t.Helper()
	update := func(org string, f func(tx storage.Tx) error) uint64 {
		revision, err := s.Update(storage.WithActor(t.Context(), "operator:alice"), org, f)
		must(t, err)
		return revision
	}
	policy := func(org string, version int64) func(tx storage.Tx) error {
		return func(tx storage.Tx) error {
			return storage.Policies.Put(tx, org, &engine.ActionPolicy{OrganizationID: org, PolicyID: "p", Version: version})
		}
	}
	first := update("acme", policy("acme", 1))
	update("acme", policy("acme", 2))
	update("acme", func(tx storage.Tx) error {
		return storage.Rules.Put(tx, "acme", &engine.Rule{ID: "r"})
	})
	update("acme", func(tx storage.Tx) error { return tx.Delete(storage.RuleKind, "acme", "r") })
	update("acme", func(tx storage.Tx) error {
		return storage.Rules.Put(tx, "acme", &engine.Rule{ID: "q", Name: "holds"})
	})
	update("rival", policy("rival", 1))
	return fmt.Sprintf("policy/p/%d", first)
}

func decideOne(t *testing.T, l *ledger.Ledger, org string, n int) {
	d := engine.Decision(1 + n%3)
	_, err := ledgertest.Commit(t.Context(), l, org, &ledger.Entry{
		Intent: &engine.Intent{
			IntentID: fmt.Sprintf("7d9f1c1e-3b5a-4f5e-8a67-%012d", n), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
			AgentID: "ci", ActionType: "deploy", Resource: "prod/web", IssuedAt: "2026-11-21T11:59:59Z",
		},
		PolicyVersion: 3,
		Result:        engine.Result{Decision: d, Findings: []engine.Finding{{Outcome: d, Reason: "policy.test: the test decided so"}}},
	})
	if err != nil {
		t.Errorf("Commit = %v", err)
	}
}

// change opens the store, calls f and closes the store. f makes a change that an attacker with
// write access could make.
func (w *written) change(t *testing.T, f func(s *Store)) {
	t.Helper()
	s := openWith(t, Options{FS: w.disk})
	f(s)
	must(t, s.Close())
}

// prove runs ledger.Prove on the store on disk.
func (w *written) prove(t *testing.T, disk vfs.FS, anchor *receipt.SignedHead) (ledger.Proof, error) {
	t.Helper()
	r, err := OpenReadOnly("data", Options{FS: disk})
	if err != nil {
		return ledger.Proof{}, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	cfg := ledger.ProveConfig{Keys: w.keys}
	if anchor != nil {
		cfg.Anchors = []receipt.SignedHead{*anchor}
	}
	return ledger.Prove(t.Context(), r, cfg)
}

// put sets a key in Pebble, with correct checksums.
func put(t *testing.T, s *Store, k key, v []byte) {
	t.Helper()
	must(t, errors.Join(s.keepNow(), s.db.Set(k, v, pebble.Sync)))
}

func del(t *testing.T, s *Store, k key) {
	t.Helper()
	must(t, errors.Join(s.keepNow(), s.db.Delete(k, pebble.Sync)))
}

// putItems appends a forged import.
func putItems(t *testing.T, s *Store, items ...[]byte) {
	t.Helper()
	last, err := s.headed(s.log.Last())
	must(t, err)
	head := binary.BigEndian.AppendUint64(nil, last.number)
	number, err := s.log.Append(head, items)
	must(t, err)
	must(t, s.tables.AddFrame(segment.Frame{Number: number, Head: head, Items: items}))
	s.pending.frame = number
}

// forge replaces items of the first segment, with correct checksums. It seals the segment first.
func forge(t *testing.T, disk vfs.FS, change func(it *item, b []byte) []byte) {
	t.Helper()
	s := openWith(t, Options{FS: disk, segmentSize: 1})
	putItems(t, s)
	must(t, s.log.Rewrite(t.Context(), 1, func(f segment.Frame) ([][]byte, error) {
		items := slices.Clone(f.Items)
		for i, b := range items {
			it, err := parseItem(b)
			must(t, err)
			items[i] = change(&it, b)
		}
		return items, nil
	}))
	if err := s.tables.Rewritten(1); err != nil {
		t.Logf("the forged segment has no table: %v", err)
	}
	closeTest(t, s)
}

// ofRow returns a change of the item of a decision that has the given kind.
func ofRow(kind byte, of *storage.Record, change func(it *item, b []byte) []byte) func(it *item, b []byte) []byte {
	return func(it *item, b []byte) []byte {
		if it.kind != kind || it.id != idOf(of) {
			return b
		}
		return change(it, b)
	}
}

func idOf(r *storage.Record) uuid.UUID { return uuid.MustParse(r.DecisionID) }

func TestDecision_Receipts_WholeHistory(t *testing.T) {
	w := writeHistory(t)
	kept, err := w.acme[0].Receipt.SignedHead()
	must(t, err)
	for name, anchor := range map[string]*receipt.SignedHead{"without an anchor": nil, "with the last head": &w.anchor, "with the head of a receipt": &kept} {
		t.Run(name, func(t *testing.T) {
			got, err := w.prove(t, w.disk, anchor)
			if err != nil {
				t.Fatalf("Prove = %v", err)
			}
			if got.Rows != 3*16-4 || got.Organizations != 3 || got.Removed != 4 || got.Settled != 3 || got.Changes != 6 || got.Removals != 1 ||
				len(got.Ends) != 1 || got.Ends[0] != w.anchor || got.Heads != int(w.anchor.Seq) {
				t.Errorf("Prove = %+v, want 44 rows of 3 organizations, 3 settled, 4 removed by 1 removal, 6 changes, up to head %d", got, w.anchor.Seq)
			}
			if got.Waiting != 0 {
				t.Errorf("Prove = %+v, want all of it signed", got)
			}
			if id, err := uuid.Parse(got.NewestRemoved); err != nil || storage.IDTime(id).UTC().Month() != time.October {
				t.Errorf("NewestRemoved = %s, want an id of October", got.NewestRemoved)
			}
		})
	}
	t.Run("an older copy goes unnoticed without an anchor", func(t *testing.T) {
		if _, err := w.prove(t, w.older, nil); err != nil {
			t.Errorf("Prove = %v", err)
		}
	})
}

// TestProve_AfterKill proves a store after a kill. The store's last writes are only in the log. The
// proof must change no file.
func TestProve_AfterKill(t *testing.T) {
	w := writeHistory(t)
	s := openWith(t, Options{FS: w.disk})
	if _, err := OpenReadOnly("data", Options{FS: w.disk}); err == nil || !strings.Contains(err.Error(), "another writ is using this directory") {
		t.Errorf("OpenReadOnly of a store that is open = %v, want it to say so", err)
	}
	l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(2), Scrub: ledgertest.Plain{}})
	must(t, err)
	decideOne(t, l, "late", 1)
	disk := w.disk.CrashClone(vfs.CrashCloneCfg{})
	must(t, errors.Join(l.Close(t.Context()), s.Close()))
	before := contents(t, disk)
	got, err := w.prove(t, disk, &w.anchor)
	if err != nil || got.Rows != 45 || got.Organizations != 4 {
		t.Errorf("Prove = %+v, %v, want 45 rows of 4 organizations", got, err)
	}
	if after := contents(t, disk); !maps.Equal(after, before) {
		t.Error("proving changed the directory")
	}
}

// TestCheckIndex makes changes to a store that an attacker with write access could make. The proof must find each
// change. TestTables_Check has those of tables.
func TestCheckIndex(t *testing.T) {
	w := writeHistory(t)
	row, settled := w.acme[5], w.acme[7]
	items := func(change func(it *item, b []byte) []byte) func(*testing.T, vfs.FS) {
		return func(t *testing.T, disk vfs.FS) { forge(t, disk, change) }
	}
	keys := func(do func(s *Store)) func(*testing.T, vfs.FS) {
		return func(t *testing.T, disk vfs.FS) {
			s := openWith(t, Options{FS: disk})
			do(s)
			closeTest(t, s)
		}
	}
	for _, test := range []struct {
		name string
		do   func(t *testing.T, disk vfs.FS)
		want string
	}{
		{"a row cut", items(ofRow(recordItem, row, func(it *item, b []byte) []byte {
			return b[:len(b)-len(it.body)+1]
		})), "a stored history row is corrupt"},
		{"a row under another id", items(ofRow(recordItem, row, func(it *item, b []byte) []byte {
			it.id[15] ^= 1
			return encoded(func(c *codec) { c.item(it); c.bytes([]byte(it.body)) })
		})), "is over other leaves"},
		{"a row of another organization", items(ofRow(recordItem, row, func(it *item, b []byte) []byte {
			it.org = "zz"
			return encoded(func(c *codec) { c.item(it); c.bytes([]byte(it.body)) })
		})), ""},
		{"a row replaced by its leaf", items(ofRow(recordItem, row, func(it *item, _ []byte) []byte {
			leaf, err := it.leaf(w.anchor.KeyID)
			must(t, err)
			return append([]byte{removedItem}, leaf[:]...)
		})), ""},
		{"a settlement cut", items(ofRow(settlementItem, settled, func(it *item, b []byte) []byte {
			return b[:len(b)-len(it.body)+1]
		})), "a stored history row is corrupt"},
		{"a settlement of no row", items(ofRow(settlementItem, settled, func(it *item, b []byte) []byte {
			it.id[15] ^= 1
			return encoded(func(c *codec) { c.item(it); c.bytes([]byte(it.body)) })
		})), ""},
		{"an entry cut", items(func(it *item, b []byte) []byte {
			if it.kind == entryItem {
				return b[:len(b)-len(it.body)+1]
			}
			return b
		}), "corrupt"},

		{"a row said to be removed", keys(func(s *Store) {
			put(t, s, orgKey(kindRemoved, "acme"), removals{{idOf(row), s.log.Last()}}.append(nil))
		}), "is decided, and its row is not there"},
		{"a removal taken back", keys(func(s *Store) { del(t, s, orgKey(kindRemoved, "acme")) }), ""},
		{"a removal cut", keys(func(s *Store) { put(t, s, orgKey(kindRemoved, "acme"), []byte{1}) }), "corrupt: short"},
		{"a tombstone of nothing", keys(func(s *Store) {
			v, _ := s.get(w.grave)
			put(t, s, w.grave, v[:idLen])
		}), "nothing is left of a removed row"},
		{"a tombstone of a row that is there", keys(func(s *Store) {
			id, leaf := idOf(settled), receipt.Leaf{Seq: 1}
			put(t, s, orgKey(kindIntent, "acme").text(settled.IntentID), appendLeaf(id[:], leaf))
		}), `it was removed, and no retention entry covers it`},
		{"a mark deleted", keys(func(s *Store) { del(t, s, markKey(headStream, s.kept)) }), "the store: its last frame is"},
	} {
		t.Run(test.name, func(t *testing.T) {
			forged := written{disk: w.disk.CrashClone(vfs.CrashCloneCfg{}), keys: w.keys}
			test.do(t, forged.disk)
			_, err := forged.prove(t, forged.disk, nil)
			wantBreak(t, err, test.want)
		})
	}
}

// erase lowers the meter of a row.
func erase(t *testing.T, s *Store, r *storage.Record) {
	t.Helper()
	m := meterKey(r.OrganizationID, storage.MonthOf(r.DecidedAt))
	n, err := s.count(m)
	must(t, err)
	put(t, s, m, binary.BigEndian.AppendUint64(nil, uint64(n-1)))
}

// decideLater decides one more intent of acme under a new head. It returns the row.
func (w *written) decideLater(t *testing.T) (row *storage.Record) {
	t.Helper()
	w.change(t, func(s *Store) {
		later := w.acme[len(w.acme)-1].DecidedAt.Add(time.Hour)
		l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(2), Scrub: ledgertest.Plain{}, Now: func() time.Time { return later }})
		must(t, err)
		decideOne(t, l, "acme", 16)
		must(t, l.Close(t.Context()))
		row = listed(t, s, "acme")[0]
	})
	return row
}

func wantBreak(t *testing.T, err error, want string) {
	t.Helper()
	if broken := (*storage.BreakError)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), want) {
		t.Errorf("Prove = %v, want a break that says %q", err, want)
	}
}

// TestProve_Rollback replaces the directory by an older copy. The tip is older, newer or missing.
// The proof must find the loss.
func TestProve_Rollback(t *testing.T) {
	w := writeHistory(t)
	_, err := w.prove(t, w.older, &w.anchor)
	wantBreak(t, err, fmt.Sprintf("head %d: it was kept as the anchor, and the history ends at head ", w.anchor.Seq))

	noted, err := readTip("data", w.disk)
	must(t, err)
	must(t, writeTip("data", w.older, noted))
	_, err = w.prove(t, w.older, nil)
	wantBreak(t, err, fmt.Sprintf("data.tip notes head %d", w.anchor.Seq))
	must(t, w.older.Remove("data.tip"))
	_, err = w.prove(t, w.older, nil)
	wantBreak(t, err, "data.tip, which notes how far the store has come, is missing")
}

// TestProve_TailCut deletes the last decision and its head, and changes the recorded tip
// accordingly. Only an anchor can show this loss.
func TestProve_TailCut(t *testing.T) {
	w := writeHistory(t)
	row := w.decideLater(t)
	head, err := row.Receipt.SignedHead()
	must(t, err)
	w.change(t, func(s *Store) {
		erase(t, s, row)
		del(t, s, markKey(headStream, s.kept))
		put(t, s, markKey(headStream, s.kept-1), nil)
		put(t, s, keptKey, binary.BigEndian.AppendUint64(nil, s.kept-1))
	})
	damage(t, w.disk, filesOf(t, w.disk, ".segment")[0], func(b []byte) []byte {
		clear(b[bytes.LastIndex(b, []byte("wfrm")):])
		return b
	})
	_, err = w.prove(t, w.disk, nil)
	wantBreak(t, err, fmt.Sprintf("data.tip notes head %d", head.Seq))
	noted, err := readTip("data", w.disk)
	must(t, err)
	noted.Head, noted.Hash, noted.Frame = w.anchor.Seq, w.anchor.Hash(), noted.Frame-1
	must(t, writeTip("data", w.disk, noted))
	if _, err := w.prove(t, w.disk, nil); err != nil {
		t.Errorf("Prove without an anchor = %v: nothing is left that tells", err)
	}
	_, err = w.prove(t, w.disk, &head)
	wantBreak(t, err, fmt.Sprintf("head %d: it was kept as the anchor, and the history ends at head %d", head.Seq, w.anchor.Seq))
}

// TestProve_Anchor proves a complete history against anchors of other histories.
func TestProve_Anchor(t *testing.T) {
	w := writeHistory(t)
	other := writeHistory(t)
	stranger, _, _ := signerOf(9).Seal(receipt.Chain{ID: w.anchor.Chain}, time.UnixMilli(1), make([][32]byte, 1))
	fork, _, _ := signerOf(1).Seal(receipt.Chain{ID: w.anchor.Chain, Seq: 1, Prev: [32]byte{1}}, time.UnixMilli(1), make([][32]byte, 1))
	for name, test := range map[string]struct {
		anchor receipt.SignedHead
		want   string
	}{
		"of another key":   {stranger, "head 1: the anchor does not verify with these keys: receipt: unknown key"},
		"of another chain": {other.anchor, fmt.Sprintf("the anchor is of chain %x", other.anchor.Chain)},
		"of a fork":        {fork, "head 2: it is not the one that was kept as the anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.prove(t, w.disk, &test.anchor)
			wantBreak(t, err, test.want)
		})
	}
}

func TestOpenReadOnly_Unreadable(t *testing.T) {
	w := writeHistory(t)
	broken := (*storage.BreakError)(nil)
	if _, err := OpenReadOnly("nowhere", Options{FS: w.disk}); err == nil || errors.As(err, &broken) {
		t.Errorf("OpenReadOnly of nothing = %v, want an error that is no break", err)
	}
	names, err := w.disk.List("data")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			must(t, w.disk.Remove("data/"+name))
		}
	}
	_, err = w.prove(t, w.disk, nil)
	wantBreak(t, err, "the directory is not as it was when it was closed")
}

// TestReadOnly_Canceled checks that a proof returns an error if its context is canceled.
func TestReadOnly_Canceled(t *testing.T) {
	w := writeHistory(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	readClosed(t, w.disk, func(r *ReadOnly) {
		if _, err := ledger.Prove(ctx, r, ledger.ProveConfig{Keys: w.keys}); !errors.Is(err, context.Canceled) {
			t.Errorf("Prove = %v, want %v", err, context.Canceled)
		}
	})
}
