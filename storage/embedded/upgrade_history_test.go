package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
	"writ/storage/storagetest"
)

// asFormat5 makes a closed directory what a writ of format 5 would have written: heads,
// rows, settlements and entries are the values of their keys.
func asFormat5(t *testing.T, fs vfs.FS) {
	t.Helper()
	s := openTest(t, fs, nil)
	defer closeTest(t, s)
	values := make(map[string][]byte)
	scan := func(k kind, f func(k, v []byte, org string, rest []byte) ([]byte, error)) {
		lower := key{byte(k)}
		if err := s.scan(t.Context(), lower, lower.end(), func(k, v []byte) (bool, error) {
			if _, is, err := parseLocation(v); !is {
				return false, err // imported, or put here by a test
			}
			org, rest := "", k[1:]
			if kind(k[0]) != kindHead {
				o, r, err := position(k)
				if err != nil {
					return true, err
				}
				org, rest = string(o), r
			}
			var err error
			values[string(k)], err = f(k, v, org, rest)
			return false, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	scan(kindHead, func(_, v []byte, _ string, _ []byte) ([]byte, error) {
		h, err := s.headOf(v)
		if err != nil {
			return nil, err
		}
		return h.MarshalBinary()
	})
	scan(kindEntry, func(_, v []byte, org string, rest []byte) ([]byte, error) {
		e, err := s.entryOf(org, entryKindOf(rest[0]), v)
		if err != nil {
			return nil, err
		}
		var row encoder
		row.entry(e, e.Inclusion)
		return row, nil
	})
	var last *storage.Record
	scan(kindRecord, func(_, v []byte, org string, rest []byte) (_ []byte, err error) {
		id, settlement, err := parsePosition(rest)
		switch {
		case err != nil:
			return nil, err
		case settlement:
			if last == nil || last.DecisionID != id.String() {
				last, err = s.record(org, id) // which was imported
			} else {
				err = s.settleRow(last, v)
			}
			if err != nil {
				return nil, err
			}
			var row encoder
			row.settled(last.SettlementEntry(), last.SettlementEntry().Inclusion)
			return row, nil
		}
		if last, err = s.parseRow(org, id, v, nil); err != nil {
			return nil, err
		}
		return appendRecord(nil, last), nil
	})
	seq := s.tip.Seq
	closeTest(t, s)
	rewrite(t, fs, func(db *pebble.DB) error {
		var errs []error
		for k, v := range values {
			errs = append(errs, db.Set([]byte(k), v, pebble.NoSync))
		}
		links := key{byte(kindLink), byte(headStream)}
		return errors.Join(append(errs,
			db.DeleteRange(key{byte(kindIndexed)}, key{byte(kindIndexed)}.end(), pebble.NoSync),
			db.DeleteRange(key{byte(kindGarbage)}, key{byte(kindGarbage)}.end(), pebble.NoSync),
			db.DeleteRange(links, links.end(), pebble.NoSync),
			db.Set(linkKey(headStream, seq), nil, pebble.NoSync),
			db.Set(formatKey, []byte("5"), pebble.Sync))...)
	})
	for name := range segmentsOf(t, fs) {
		if err := fs.Remove(fs.PathJoin("data", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syncDir("data", fs); err != nil {
		t.Fatal(err)
	}
}

// olderHistory is a directory of format 5, closed, with rows that were settled without a
// signature, rows that were removed without a trace, and imported ones.
func olderHistory(t *testing.T) written {
	t.Helper()
	w := writeHistory(t)
	w.asFormat4(t)
	asFormat5(t, w.disk)
	return w
}

// addImported imports rows of another chain, of which one was removed and another settled
// here.
func (w *written) addImported(t *testing.T) {
	t.Helper()
	other, foreign := storagetest.NewWriter(), openTest(t, vfs.NewMem(), nil)
	rows := []*storage.Record{other.Record("moved"), other.Record("moved"), other.Record("moved")}
	if _, err := other.Commit(t.Context(), foreign, rows...); err != nil {
		t.Fatal(err)
	}
	settlement := storage.Settlement{Outcome: "failed", RecordedAt: rows[0].DecidedAt}
	if _, err := other.Settle(t.Context(), foreign, rows[0], settlement); err != nil {
		t.Fatal(err)
	}
	leaf, err := rows[2].Receipt.Inclusion().Leaf(rows[2].Receipt.LeafHash())
	if err != nil {
		t.Fatal(err)
	}
	w.change(t, func(s *Store) {
		if err := s.Import(t.Context(), "moved", rows[:2], []*storage.Tombstone{{
			OrganizationID: "moved", IntentID: rows[2].IntentID, DecisionID: rows[2].DecisionID, Leaves: []receipt.Leaf{leaf}, Imported: true,
		}}); err != nil {
			t.Fatal(err)
		}
		l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(2), Scrub: plain{}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = l.Settle(t.Context(), "moved", rows[1].DecisionID, settlement)
		if err := errors.Join(err, l.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
	})
}

// wantInSegments holds that only what was imported is the value of its key.
func wantInSegments(t *testing.T, s *Store) {
	t.Helper()
	for _, k := range []kind{kindHead, kindEntry, kindRecord, kindMove} {
		lower := key{byte(k)}
		if err := s.scan(t.Context(), lower, lower.end(), func(k, v []byte) (bool, error) {
			if at, is, err := parseLocation(v); is && err == nil {
				_, err = s.frame(at.frame)
				return false, err
			}
			if org, _, err := position(k); kind(k[0]) != kindRecord || string(org) != "moved" {
				t.Errorf("the value of %q is %q, %v, want where it is", k, v, err)
			}
			return false, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpgradeHistory: after the upgrade all is as before, but in segments.
func TestUpgradeHistory(t *testing.T) {
	w := olderHistory(t)
	want := readStored(t, w.disk)
	wantProof, err := w.prove(t, w.disk, &w.anchor)
	if err != nil || wantProof.Unsigned != 1 || wantProof.Unmarked != 3 {
		t.Fatalf("Prove before = %+v, %v", wantProof, err)
	}
	// An upgrade that was interrupted has left keys, and segments.
	rewrite(t, w.disk, func(db *pebble.DB) error {
		return db.Set(moveKey(1, 0, append([]byte{removedItem}, make([]byte, 32)...)), nil, pebble.Sync)
	})
	for name, b := range segmentsOf(t, writeHistory(t).disk) {
		if err := copyFile(w.disk, w.disk.PathJoin("data", name), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // once more with what was upgraded
		s := openTest(t, w.disk, nil)
		wantInSegments(t, s)
		closeTest(t, s)
		if diff := cmp.Diff(want, readStored(t, w.disk), cmp.AllowUnexported(stored{})); diff != "" {
			t.Errorf("-before +after\n%s", diff)
		}
		if proof, err := w.prove(t, w.disk, &w.anchor); err != nil || cmp.Diff(wantProof, proof) != "" {
			t.Errorf("Prove = %+v, %v, want %+v", proof, err, wantProof)
		}
	}
	counts := wantRead(t, w.disk)
	if counts["r"] != 44 || counts["s"] != 3 || counts["x"] != 5 {
		t.Errorf("%v were read, want 44 rows, 3 settlements and 5 removed items", counts)
	}
	w.decideLater(t)
	if _, err := w.prove(t, w.disk, &w.anchor); err != nil {
		t.Errorf("Prove after a further decision = %v", err)
	}
	wantRead(t, w.disk)
}

// TestUpgradeHistory_Imported: rows of another chain stay beside the segments.
func TestUpgradeHistory_Imported(t *testing.T) {
	w := writeHistory(t)
	w.addImported(t)
	asFormat5(t, w.disk)
	want := readStored(t, w.disk)
	w.change(t, func(s *Store) {
		wantInSegments(t, s)
		if n, err := s.CountImported(t.Context(), "moved"); n != (storage.Imported{Rows: 2, Removed: 1, Settled: 1}) || err != nil {
			t.Errorf("CountImported = %+v, %v, want 2 rows, 1 of them settled here, and what is left of 1", n, err)
		}
	})
	if diff := cmp.Diff(want, readStored(t, w.disk), cmp.AllowUnexported(stored{})); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
}

// TestUpgradeHistory_Progress: each step of the upgrade is told with how much of it is done,
// and its end before anything else.
func TestUpgradeHistory_Progress(t *testing.T) {
	var steps []string
	w := olderHistory(t)
	s, err := Open("data", Options{FS: w.disk, Log: slog.New(slog.DiscardHandler), Progress: func(step string, done, of uint64) {
		if of > 0 && done > of {
			t.Errorf("%s: %d of %d", step, done, of)
		}
		if len(steps) == 0 || steps[len(steps)-1] != step {
			steps = append(steps, step)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	want := []string{"", "upgrade: sorting the history", "", "upgrade: moving the history to segments", "", "rebuilding the index of the history", ""}
	if !slices.Equal(steps, want) {
		t.Errorf("told %q, want %q", steps, want)
	}
}

// TestUpgradeHistory_Crash: a crash before any write of the upgrade leaves a directory of
// either format, which can be read, and whose next start upgrades it.
func TestUpgradeHistory_Crash(t *testing.T) {
	w := olderHistory(t)
	want := readStored(t, w.disk)
	var mu sync.Mutex // Pebble flushes beside the upgrade
	var crashed []*vfs.MemFS
	wrapped := errorfs.Wrap(w.disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			// Half of what is not synced could be a marker of Pebble's without its manifest.
			crashed = append(crashed, w.disk.CrashClone(vfs.CrashCloneCfg{}),
				w.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(7, 8))}))
		}
		return nil
	}))
	s := openTest(t, wrapped, nil)
	mu.Lock()
	writes := len(crashed) // those of Close are none of the upgrade
	mu.Unlock()
	closeTest(t, s)
	found := make(map[string]int)
	for i, disk := range crashed[:writes] {
		found[stateOf(t, disk)]++
		if diff := cmp.Diff(want, readStored(t, disk), cmp.AllowUnexported(stored{})); diff != "" {
			t.Fatalf("a crash before write %d, before the next start: -want +got\n%s", i, diff)
		}
		s := openTest(t, disk, nil)
		wantInSegments(t, s)
		closeTest(t, s)
		if diff := cmp.Diff(want, readStored(t, disk), cmp.AllowUnexported(stored{})); diff != "" {
			t.Fatalf("a crash before write %d: -want +got\n%s", i, diff)
		}
		if _, err := w.prove(t, disk, &w.anchor); err != nil {
			t.Fatalf("a crash before write %d: Prove = %v", i, err)
		}
	}
	for _, state := range []string{"5", "5, some frames", "6, not indexed", "6"} {
		if found[state] == 0 {
			t.Errorf("no crash left a directory of format %s: %v", state, found)
		}
	}
}

// stateOf says how far the upgrade of a directory has come.
func stateOf(t *testing.T, disk *vfs.MemFS) string {
	t.Helper()
	lock, err := lockDir("data", disk)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	s, err := openReadOnly("data", disk, lock)
	if err != nil {
		t.Fatal(err)
	}
	defer s.closeFiles()
	v, err := s.get(formatKey)
	if err != nil {
		t.Fatal(err)
	}
	links, err := s.links(headStream)
	switch {
	case err != nil:
		t.Fatal(err)
	case string(v) == "6" && len(links) == 0:
		return "6, not indexed"
	case string(v) == "5" && len(segmentsOf(t, disk)) > 0:
		return "5, some frames"
	}
	return string(v)
}

// TestUpgradeHistory_Damaged: what is not as the heads sign it is named, and the directory
// stays one of format 5.
func TestUpgradeHistory_Damaged(t *testing.T) {
	whole := writeHistory(t)
	row := whole.acme[5]
	leaf, err := row.Receipt.Inclusion().Leaf(row.Receipt.LeafHash())
	if err != nil {
		t.Fatal(err)
	}
	head, decision := fmt.Sprintf("head %d: ", leaf.Seq), fmt.Sprintf("organization %q, decision %s: ", "acme", row.DecisionID)
	asFormat5(t, whole.disk)
	changed := *row
	changed.Receipt.Exp++
	for name, test := range map[string]struct {
		do   func(db *pebble.DB) error
		want string
	}{
		"a row changed": {func(db *pebble.DB) error {
			return db.Set(recordKey("acme", idOf(row)), appendRecord(nil, &changed), pebble.Sync)
		}, "is over other leaves"},
		"a row lost": {func(db *pebble.DB) error { return db.Delete(recordKey("acme", idOf(row)), pebble.Sync) }, head + "it signs "},
		"a row cut": {func(db *pebble.DB) error {
			return db.Set(recordKey("acme", idOf(row)), []byte{recordVersion}, pebble.Sync)
		}, decision + "a stored history row is corrupt"},
		"a row there twice": {func(db *pebble.DB) error {
			return db.Set(recordKey("also", idOf(row)), appendRecord(nil, row), pebble.Sync)
		}, head + "it signs "},
		"a settlement without its row": {func(db *pebble.DB) error {
			return db.Delete(recordKey("acme", idOf(whole.acme[7])), pebble.Sync)
		}, "a settlement is there, and no such row"},
		"a head changed": {func(db *pebble.DB) error {
			v, err := (receipt.SignedHead{Head: receipt.Head{Chain: leaf.Chain, Seq: 2, Size: 1}, KeyID: "k"}).MarshalBinary()
			return errors.Join(err, db.Set(headKey(2), v, pebble.Sync))
		}, "head 2: it does not follow the head before"},
		"a head in the place of another": {func(db *pebble.DB) error {
			v, closer, err := db.Get(headKey(2))
			if err != nil {
				return err
			}
			return errors.Join(db.Set(headKey(3), bytes.Clone(v), pebble.Sync), closer.Close())
		}, "head 3: it does not follow the head before"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := whole.disk.CrashClone(vfs.CrashCloneCfg{})
			rewrite(t, disk, test.do)
			for range 2 {
				_, err := Open("data", Options{FS: disk, Log: (*logged)(nil).logger()})
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Open = %v, want %q", err, test.want)
				}
			}
			if state := stateOf(t, disk); !strings.HasPrefix(state, "5") {
				t.Errorf("the directory is of format %s, want 5", state)
			}
		})
	}
}

// TestUpgradeHistory_HeadsLost: an operator can have accepted the loss of heads from the
// middle. The rows under them stay where they are.
func TestUpgradeHistory_HeadsLost(t *testing.T) {
	w := writeHistory(t)
	asFormat5(t, w.disk)
	rewrite(t, w.disk, func(db *pebble.DB) error {
		return errors.Join(db.Delete(headKey(1), pebble.Sync), db.Delete(headKey(3), pebble.Sync))
	})
	want := readStored(t, w.disk)
	log := new(logged)
	closeTest(t, openTest(t, w.disk, log))
	if diff := cmp.Diff(want, readStored(t, w.disk), cmp.AllowUnexported(stored{})); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
	if frames, damage := readHistory(t, segmentsOf(t, w.disk)); len(frames) != len(want.heads) || damage != "" {
		t.Errorf("the second reader read %d frames, %q, want %d", len(frames), damage, len(want.heads))
	}
	if text := log.buf.String(); strings.Count(text, "heads are missing") != 2 {
		t.Errorf("the log is\n%s\nwant that heads are missing, twice", text)
	}
}

// TestUpgradeHistory_FormatSetBack: segments that have the history are not taken for those
// TestUpgradeHistory_FormatSetBack: segments that have the history are not taken for those
// of an interrupted upgrade.
func TestUpgradeHistory_FormatSetBack(t *testing.T) {
	w := writeHistory(t)
	rewrite(t, w.disk, func(db *pebble.DB) error { return db.Set(formatKey, []byte("5"), pebble.Sync) })
	before := segmentsOf(t, w.disk)
	_, err := Open("data", Options{FS: w.disk, Log: (*logged)(nil).logger(), AcceptRollback: new(uint64)})
	if err == nil || !strings.Contains(err.Error(), "there is no frame") {
		t.Errorf("Open = %v, want that a frame is missing", err)
	}
	if diff := cmp.Diff(before, segmentsOf(t, w.disk)); diff != "" {
		t.Errorf("the segments have changed:\n%s", diff)
	}
}
