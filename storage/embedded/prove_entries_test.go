package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
)

// TestDecision_Receipts_ForgedEntries does the same to what is beside the rows.
func TestDecision_Receipts_ForgedEntries(t *testing.T) {
	w := writeHistory(t)
	settled := w.acme[7]
	at := fmt.Sprintf(`organization "acme", decision %s: `, settled.DecisionID)
	head, err := settled.Settlement.Receipt.SignedHead(receipt.EntryLeaf(settled.SettlementEntry().Body))
	must(t, err)
	otherwise := *settled.Settlement
	otherwise.Outcome = "failed"
	elsewhere := *w.acme[8]
	elsewhere.Settlement = settled.Settlement
	// changed puts an entry of acme's whose body f has changed.
	changed := func(kind storage.EntryKind, f func(body string) string) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", kind)
			putEntry(t, s, k, e, []byte(f(string(e.Body))))
		}
	}
	replaced := func(old, new string) func(string) string {
		return func(body string) string {
			if !strings.Contains(body, old) {
				t.Fatalf("%s has no %s", body, old)
			}
			return strings.Replace(body, old, new, 1)
		}
	}
	deleted := func(kind storage.EntryKind) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", kind)
			del(t, s, k)
			del(t, s, entryKey(e))
		}
	}
	// dug changes what is left of a removed row.
	dug := func(f func(left []receipt.Leaf) []receipt.Leaf) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) {
			v, _ := s.get(w.grave)
			id, left, _, err := parseIntent(v, [16]byte{})
			if err != nil || len(left) != 2 {
				t.Fatalf("of a settled row %d leaves are left, %v; want 2", len(left), err)
			}
			v = id[:]
			for _, l := range f(left) {
				v = appendLeaf(v, l)
			}
			put(t, s, w.grave, v)
		}
	}
	for _, test := range []struct {
		name string
		do   func(t *testing.T, s *Store)
		want string
	}{
		{"a settlement changed", settledAs(settled, otherwise), at + fmt.Sprintf("its settlement: it is not what head %d signs", head.Seq)},
		{"a settlement deleted", func(t *testing.T, s *Store) { del(t, s, settlementKey("acme", idOf(settled))) }, fmt.Sprintf("head %d: it signs %d leaves, and ", head.Seq, head.Size)},
		{"a settlement in the place of another", settledAs(&elsewhere, *settled.Settlement), "its settlement: it is not what head "},
		{"a settlement of no row", func(t *testing.T, s *Store) {
			id := idOf(settled)
			id[15] ^= 1
			v, _ := s.get(settlementKey("acme", idOf(settled)))
			put(t, s, settlementKey("acme", id), v)
		}, "a settlement is there, and no such row"},
		{"a settlement cut", func(t *testing.T, s *Store) {
			putItem(t, s, settlementKey("acme", idOf(settled)), settlementItem, "acme", idOf(settled), []byte{entryVersion})
		}, at + "a stored history row is corrupt"},

		{"a removal's time moved", changed(storage.RetentionEntry, replaced(`"before":"2026-`, `"before":"2027-`)), `organization "acme": retention "`},
		{"a removal's count lowered", changed(storage.RetentionEntry, replaced(`"count":4`, `"count":3`)), `organization "acme": retention "`},
		{"a removal not announced", deleted(storage.RetentionEntry), "it was removed, and no retention entry covers it"},
		{"rows removed that were not announced", func(t *testing.T, s *Store) {
			if n, err := s.RemoveRecords(t.Context(), "rival", w.acme[3].DecidedAt, storage.Expired{Records: 100, Settled: 100}); n.Records == 0 || err != nil {
				t.Fatalf("RemoveRecords = %+v, %v", n, err)
			}
		}, `it was removed, and no retention entry covers it`},
		{"newer rows removed than were announced", func(t *testing.T, s *Store) {
			if n, err := s.RemoveRecords(t.Context(), "acme", w.acme[11].DecidedAt.Add(time.Hour), storage.Expired{Records: 100, Settled: 100}); n.Records != 12 || err != nil {
				t.Fatalf("RemoveRecords = %+v, %v, want 12", n, err)
			}
		}, `it was removed, and no retention entry covers it`},
		{"more rows removed than were announced", func(t *testing.T, s *Store) {
			l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(2), Scrub: plain{}})
			must(t, err)
			before := w.acme[0].DecidedAt
			must(t, errors.Join(l.Retain(t.Context(), "rival", before, storage.Expired{Records: 3}), l.Retain(t.Context(), "rival", before.AddDate(0, -6, 0), storage.Expired{Records: 9}), l.Close(t.Context())))
			if n, err := s.RemoveRecords(t.Context(), "rival", before, storage.Expired{Records: 100, Settled: 100}); n.Records != 4 || err != nil {
				t.Fatalf("RemoveRecords = %+v, %v, want 4", n, err)
			}
		}, `organization "rival": 4 rows were removed that only retention entries for 3 cover`},
		{"a tombstone changed", dug(func(left []receipt.Leaf) []receipt.Leaf { left[0].Hash[0] ^= 1; return left }), " does not sign all of its leaves"},
		{"a tombstone moved", dug(func(left []receipt.Leaf) []receipt.Leaf { left[0].Index ^= 1; return left }), " has no room for it at leaf "},
		{"a tombstone under another head", dug(func(left []receipt.Leaf) []receipt.Leaf { left[0].Seq = 99; return left }), "its tombstone is under head 99"},
		{"a tombstone without the settlement's", dug(func(left []receipt.Leaf) []receipt.Leaf { return left[:1] }), " leaves are missing"},
		{"a tombstone of nothing", dug(func(left []receipt.Leaf) []receipt.Leaf { return nil }), "is decided, and its row is not there"},
		{"a row deleted and hidden in a tombstone as its settlement", func(t *testing.T, s *Store) {
			var unsettled key
			prefix := orgKey(kindIntent, "acme")
			if err := s.scan(t.Context(), prefix, prefix.end(), func(k, v []byte) (bool, error) {
				_, left, _, err := parseIntent(v, [16]byte{})
				if len(left) == 1 {
					unsettled = bytes.Clone(k)
				}
				return false, err
			}); err != nil {
				t.Fatal(err)
			}
			hideIn(t, s, w.acme[5], unsettled)
		}, `organization "acme": 2 settlements were removed that only retention entries for 1 cover`},
		{"a row deleted and hidden in the tombstone of a settled one", func(t *testing.T, s *Store) { hideIn(t, s, w.acme[5], w.grave) },
			"3 leaves are left of it, and a decision has one and its settlement another"},
		{"a tombstone deleted", func(t *testing.T, s *Store) {
			del(t, s, w.grave)
			put(t, s, meterKey("acme", 202610), binary.BigEndian.AppendUint64(nil, 3))
		}, " leaves are missing"},
		{"a tombstone of a row that is there", func(t *testing.T, s *Store) {
			id, leaf := idOf(settled), receipt.Leaf{Seq: 1}
			put(t, s, orgKey(kindIntent, "acme").text(settled.IntentID), appendLeaf(id[:], leaf))
		}, `it was removed, and no retention entry covers it`},

		{"a change's actor changed", changed(storage.ChangeEntry, replaced("alice", "bob")), `organization "acme": change "` + w.policy + `"`},
		{"a change's digest changed", changed(storage.ChangeEntry, replaced(`"digest":"sha256:`, `"digest":"sha256:0`)), `organization "acme": change "` + w.policy + `"`},
		{"a change deleted", deleted(storage.ChangeEntry), " leaves are missing"},
		{"a change whose key is deleted", func(t *testing.T, s *Store) {
			_, e := firstEntry(t, s, "acme", storage.ChangeEntry)
			del(t, s, entryKey(e))
		}, `change "` + w.policy + `" is not in its place`},
		{"a change that was never made", func(t *testing.T, s *Store) {
			k, _ := firstEntry(t, s, "acme", storage.ChangeEntry)
			v, _ := s.get(k)
			put(t, s, entriesKey("acme", storage.ChangeEntry).place(place{head.Seq, 0}), v)
		}, `change "` + w.policy + `" is not in its place`},
		{"a change of another organization", func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", storage.ChangeEntry)
			v, _ := s.get(k)
			del(t, s, k)
			del(t, s, entryKey(e))
			e.OrganizationID = "ac"
			at := k[len(k)-placeLen:]
			put(t, s, append(entriesKey("ac", storage.ChangeEntry), at...), v)
			put(t, s, entryKey(e), at)
		}, `organization "ac": a stored entry is corrupt`},
		{"a key of no entry", func(t *testing.T, s *Store) {
			put(t, s, entryKey(&storage.Entry{Kind: storage.ChangeEntry, OrganizationID: "acme", Key: "x"}), key{}.place(place{1, 1}))
		}, "7 entries have 8 keys"},
		{"an entry cut", func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", storage.ChangeEntry)
			putEntry(t, s, k, e, nil)
		}, "a stored entry is corrupt"},
	} {
		t.Run(test.name, func(t *testing.T) {
			forged := written{disk: w.disk.CrashClone(vfs.CrashCloneCfg{}), keys: w.keys}
			forged.change(t, func(s *Store) { test.do(t, s) })
			_, err := forged.prove(t, forged.disk, nil)
			wantBreak(t, err, test.want)
		})
	}
}

// hideIn erases a row and leaves its leaf among those of a removed one.
func hideIn(t *testing.T, s *Store, r *storage.Record, grave key) {
	t.Helper()
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	must(t, err)
	erase(t, s, r)
	v, err := s.get(grave)
	if _, left, _, _ := parseIntent(v, [16]byte{}); err != nil || len(left) == 0 {
		t.Fatalf("there is no tombstone: %d leaves, %v", len(left), err)
	}
	put(t, s, grave, appendLeaf(bytes.Clone(v), leaf))
}

// decideLater has acme decide once more, under a head of its own, and returns the row.
func (w *written) decideLater(t *testing.T) (row *storage.Record) {
	t.Helper()
	w.change(t, func(s *Store) {
		later := w.acme[len(w.acme)-1].DecidedAt.Add(time.Hour)
		l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(2), Scrub: plain{}, Now: func() time.Time { return later }})
		must(t, err)
		decideOne(t, l, "acme", 16)
		must(t, l.Close(t.Context()))
		rows, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 1})
		must(t, err)
		row = rows[0]
	})
	return row
}

// firstEntry returns an organization's oldest entry of a kind and its key.
func firstEntry(t *testing.T, s *Store, org string, kind storage.EntryKind) (k key, e *storage.Entry) {
	t.Helper()
	prefix := entriesKey(org, kind)
	if err := s.scan(t.Context(), prefix, prefix.end(), func(at, v []byte) (_ bool, err error) {
		k = bytes.Clone(at)
		e, err = s.entryOf(org, kind, v)
		return true, err
	}); err != nil || e == nil {
		t.Fatalf("no %s of %s: %v", kind, org, err)
	}
	return k, e
}
