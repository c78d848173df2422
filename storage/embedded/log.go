package embedded

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
	"writ/storage/embedded/segment"
)

// segmentSize is the size of a segment: reading one after a crash takes a fraction of a
// second, and its keys some 50 MB of memory.
const segmentSize = 64 << 20

// openLog opens the segments of the history and adds the keys of those frames to the tail
// that Pebble does not have.
func (s *Store) openLog(fs vfs.FS, size int, readOnly bool) (err error) {
	s.tail.trees = []*tree{newTree()}
	s.log, err = segment.Open(s.health.dir, segment.Options{
		FS: fs, Size: size, Prepare: fs == vfs.Default, ReadOnly: readOnly,
	})
	if err != nil {
		return err
	}
	indexed, err := s.count(indexedKey)
	if err != nil {
		return err
	}
	s.indexed = uint64(indexed)
	return s.log.Scan(context.Background(), s.indexed+1, s.replay)
}

// replay adds the keys of a frame to the tail.
func (s *Store) replay(stored segment.Frame) error {
	f, err := decodeFrame(stored)
	if err != nil {
		return err
	}
	k := frameKeys{frame: f.number}
	k.head(f.head.Seq)
	months := make(map[meter]int64, 1)
	for i, b := range f.items {
		it, err := parseItem(b)
		if err == nil {
			err = k.item(&it, place{f.head.Seq, uint32(i)}, months)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	for m, n := range months {
		stored, err := s.count(meterKey(m.org, m.month))
		if err != nil {
			return err
		}
		k.meter(m, stored+n)
	}
	s.tail.add(f.number, k.keys)
	return nil
}

// frameKeys are the keys of a frame.
type frameKeys struct {
	frame uint64
	keys  [][2]string
	buf   key
}

func (k *frameKeys) set(name key, v string) {
	k.keys = append(k.keys, [2]string{string(name), v})
	k.buf = name
}

func (k *frameKeys) at(index uint32) string { return location{k.frame, uint64(index)}.value() }

func (k *frameKeys) head(seq uint64) { k.set(headKey(seq), k.at(0)) }

func (k *frameKeys) record(org, intentKey string, d engine.Decision, id uuid.UUID, index uint32) {
	k.set(k.buf[:0].org(kindRecord, org).id(id), k.at(index))
	k.set(k.buf[:0].org(kindIntent, org).text(intentKey), string(id[:]))
	k.set(k.buf[:0].org(kindByDecision, org).decision(d).id(id), "")
}

func (k *frameKeys) entry(e *storage.Entry, at place) {
	if e.Kind == storage.SettlementEntry {
		id, _ := storage.ParseID(e.Key) // Check has
		k.set(append(k.buf[:0].org(kindRecord, e.OrganizationID).id(id), settlementMark), k.at(at.index))
		return
	}
	k.set(entriesKey(e.OrganizationID, e.Kind).place(at), k.at(at.index))
	k.set(entryKey(e), string(key{}.place(at)))
}

func (k *frameKeys) meter(m meter, n int64) { k.set(meterKey(m.org, m.month), number(n)) }

// item adds the keys of an item that was read, and counts a record.
func (k *frameKeys) item(it *item, at place, months map[meter]int64) error {
	switch it.kind {
	case removedItem:
	case recordItem:
		r, err := parseRecord(it.org, it.id, []byte(it.body), nil)
		if err != nil {
			return err
		}
		k.record(it.org, r.IntentKey(), r.Decision, it.id, at.index)
		if r.Metered() {
			months[meter{it.org, storage.MonthOf(r.DecidedAt)}]++
		}
	case settlementItem:
		k.entry(&storage.Entry{Kind: storage.SettlementEntry, OrganizationID: it.org, Key: it.id.String()}, at)
	default:
		e, err := parseEntry(it.org, it.entryKind, []byte(it.body))
		if err != nil {
			return err
		}
		k.entry(e, at)
	}
	return nil
}

// items returns the items of a sealed batch. They lack their signatures if these follow
// from the head, as they should.
func items(sealed storage.Batch, ids map[*storage.Record]uuid.UUID, head *receipt.SignedHead) ([][]byte, error) {
	all := make([][]byte, 0, len(sealed.Records)+len(sealed.Entries))
	leaves := make([][32]byte, 0, cap(all))
	whole := true // no signature may be left out
	for _, bare := range []bool{true, false} {
		e := make(encoder, 0, 640*cap(all))
		all, leaves = all[:0], leaves[:0]
		for _, r := range sealed.Records {
			start := len(e)
			e.record(r, ids[r], bare)
			all = append(all, e[start:])
			leaves = append(leaves, r.Receipt.LeafHash())
			whole = whole && r.Receipt.KeyID == head.KeyID
		}
		for _, entry := range sealed.Entries {
			start := len(e)
			e.entryItem(entry, bare)
			all = append(all, e[start:])
			it, err := parseItem(e[start:])
			if err != nil {
				return nil, err
			}
			leaf, err := it.leaf(head.KeyID)
			if err != nil {
				return nil, err
			}
			leaves = append(leaves, leaf)
			whole = whole && entry.KeyID == head.KeyID
		}
		if whole && int(head.Size) == len(leaves) && receipt.Root(leaves) == head.Root {
			break
		}
	}
	return all, nil
}

func (e *encoder) record(r *storage.Record, id uuid.UUID, bare bool) {
	e.byte(recordItem)
	e.text(r.OrganizationID)
	*e = append(*e, id[:]...)
	row := *r
	if bare {
		row.Receipt.Sig, row.Receipt.KeyID = "", ""
	}
	*e = appendRecord(*e, &row)
}

func (e *encoder) entryItem(entry *storage.Entry, bare bool) {
	proof := entry.Inclusion
	if bare {
		proof = receipt.Inclusion{}
	}
	if entry.Kind != storage.SettlementEntry {
		e.byte(entryItem)
		e.text(entry.OrganizationID)
		e.byte(kindBytes[entry.Kind])
		e.entry(entry, proof)
		return
	}
	id, _ := storage.ParseID(entry.Key) // Check has
	e.byte(settlementItem)
	e.text(entry.OrganizationID)
	*e = append(*e, id[:]...)
	e.present(entry.Settlement.Unapproved)
	e.settled(entry, proof)
}

// write appends a frame to the segments. It is durable unless asyncSync will sync it. A
// failure stops the store, because it is unknown how much of the frame is on the disk.
// commits is held.
func (s *Store) write(head []byte, items [][]byte) (number uint64, err error) {
	if err := s.health.stopped(); err != nil {
		return 0, err
	}
	if s.async != nil {
		if err := s.async.wait(); err != nil {
			return 0, err
		}
	}
	if number, err = s.log.Append(head, items); err == nil && s.async == nil {
		err = s.log.Sync()
	}
	if err != nil {
		s.health.stop("writing the history", err)
	}
	if s.async != nil {
		s.async.wrote()
	}
	return number, s.health.stopped()
}

// lastFrame returns the head of the last frame, or storage.ErrNotFound.
func (s *Store) lastFrame() (h receipt.SignedHead, err error) {
	last := s.log.Last()
	if last == 0 {
		return h, storage.ErrNotFound
	}
	f, err := s.frame(last)
	if err != nil {
		return h, err
	}
	return f.head, nil
}
