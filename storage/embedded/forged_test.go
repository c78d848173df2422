package embedded

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest/forged"
)

func TestForged(t *testing.T) {
	forged.Run(t, forged.Backend{Load: load, OneChain: true, Unique: true})
}

// load writes a history to a new directory. The first frame has all rows and entries.
func load(t *testing.T, h *forged.History) ledger.History {
	disk := vfs.NewMem()
	s := openTest(t, disk, nil)
	for _, heads := range h.ByChain {
		for i, head := range heads {
			loadFrame(t, s, head, h, i == 0)
		}
	}
	b := &batch{b: s.db.NewBatch()}
	for _, left := range h.Graves {
		id := uuid.MustParse(left.DecisionID)
		v := id[:]
		for _, l := range left.Leaves {
			if l.Chain == s.tip.ID && !left.Imported {
				v = appendLeaf(v, l)
			} else {
				v = appendForeignLeaf(v, l, left.Imported)
			}
		}
		b.set(orgKey(kindIntent, left.OrganizationID).text(left.IntentKey()), v)
	}
	for _, d := range h.Documents {
		c := storage.CollectionOf(d.Kind)
		keys, _, _, err := c.Describe(d)
		if err != nil {
			t.Fatal(err)
		}
		b.edit(storage.Edit{Collection: c, Document: d, After: keys})
	}
	for i, c := range h.Waiting {
		v, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		b.set(changeKey(c.Revision, i), v)
	}
	for m, n := range h.Meters {
		b.set(meterKey(m.Org, m.Month), binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	s.writes.Lock()
	s.change = h.LastRevision()
	s.writes.Unlock()
	b.delete(markKey(changeStream, 0))
	b.set(markKey(changeStream, s.change), nil)
	if err := s.apply(b); err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	r, err := OpenReadOnly("data", Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return r
}

// loadFrame writes a frame with a head. With all set, the frame has all rows and entries. Otherwise
// it has none.
func loadFrame(t *testing.T, s *Store, head receipt.SignedHead, h *forged.History, all bool) {
	t.Helper()
	var sealed storage.Batch
	ids := make(map[*storage.Record]uuid.UUID)
	if all {
		sealed = storage.Batch{Records: h.Records, Entries: h.Others}
		for _, r := range h.Records {
			if ids[r] = uuid.MustParse(r.DecisionID); r.Settlement != nil {
				sealed.Entries = append(sealed.Entries, r.SettlementEntry())
			}
		}
	}
	signed, err := head.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	items := append([][]byte{append([]byte{removedItem}, make([]byte, 32)...)}, s.buffers.encode(sealed, ids, &receipt.SignedHead{Head: receipt.Head{Size: 1 << 30}})...)
	number, err := s.write(signed, items)
	if err != nil {
		t.Fatal(err)
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	must(t, s.tables.AddFrame(segment.Frame{Number: number, Head: signed, Items: items}))
	s.pending.count(number, sealed.Records, nil)
	s.tip = receipt.Chain{ID: head.Chain}.Next(head.Head)
}
