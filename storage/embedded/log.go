package embedded

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
)

// segmentSize is the size of a segment in bytes. Reading a segment of this size after a crash takes
// a fraction of a second. Its keys take about 50 MB of memory.
const segmentSize = 64 << 20

// openLog opens the segments. It adds to the index the keys that Pebble does not have. If the index
// is stale, openLog rebuilds it first.
func (s *Store) openLog(fs vfs.FS, size int, stale bool) (err error) {
	s.log, err = segment.Open(s.health.dir, segment.Options{
		FS: fs, Size: size, Prepare: fs == vfs.Default, ReadOnly: s.options.ReadOnly,
	})
	if err != nil {
		return err
	}
	if err := s.newIntents(fs); err != nil {
		return err
	}
	indexed := s.index.Indexed()
	if stale {
		s.health.log.Warn("the index of the history is not whole; it is rebuilt from the segments", "dir", s.health.dir,
			"frames", indexed)
		if err := s.reindex(); err != nil {
			return err
		}
		s.health.log.Info("the index of the history is whole again", "dir", s.health.dir, "frames", indexed)
	}
	if err := s.log.Scan(context.Background(), indexed+1, s.replay); err != nil || s.options.ReadOnly {
		return err
	}
	return s.loadIntents()
}

// replay adds the keys of a frame to the index. If the frame abandons an import, replay deletes the
// keys of the import from Pebble. They were there before the frame was written.
func (s *Store) replay(stored segment.Frame) error {
	f, err := decodeFrame(stored)
	if err != nil {
		return err
	}
	var k frameKeys
	k.begin(f)
	b, months := s.newBatch(), make(map[meter]int64, 1)
	err = f.each(func(i int, it *item) error {
		if err := s.abandon(b, it); err != nil {
			return err
		}
		return k.item(f, i, it, months)
	})
	if err == nil && !s.options.ReadOnly {
		err = s.apply(b)
	}
	if err != nil {
		return err
	}
	for m, n := range months {
		stored, err := s.count(meterKey(m.org, m.month))
		if err != nil {
			return err
		}
		k.meter(m, stored+n)
	}
	s.index.Add(f.number, &k.Keys)
	return nil
}

// frameBuffers are buffers for building a frame. The next frame uses them again.
type frameBuffers struct {
	rows   []byte
	items  [][]byte
	keys   frameKeys
	hashes []uint64 // of the intents
}

// notMetered is the value of the index by decision for a row that no meter counts. Other rows have an empty value.
const notMetered = 1

// frameKeys are the keys of a frame.
type frameKeys struct {
	index.Keys
	frame uint64
}

// reset begins the keys of a frame.
func (k *frameKeys) reset(frame uint64) {
	k.Reset()
	k.frame = frame
}

// key returns the buffer. The caller appends the next key or value to it.
func (k *frameKeys) key() key { return k.Buf }

// at appends the location of item index of the frame to the buffer.
func (k *frameKeys) at(index uint32) key {
	return location{k.frame, uint64(index)}.append(k.Buf)
}

// begin begins the keys of a frame. If the frame has a head, begin adds the key of the head.
func (k *frameKeys) begin(f *frame) {
	k.reset(f.number)
	if !f.imported() {
		k.head(f.head.Seq)
	}
}

func (k *frameKeys) head(seq uint64) {
	k.End(append(k.Buf, headKey(seq)...))
	k.End(k.at(0))
}

func (k *frameKeys) record(r *storage.Record, id uuid.UUID, index uint32) {
	k.End(k.key().org(kindRecord, r.OrganizationID).id(id))
	k.End(k.at(index))
	k.End(k.key().org(kindByDecision, r.OrganizationID).decision(r.Decision).id(id))
	if !r.Metered() {
		k.Buf = append(k.Buf, notMetered)
	}
	k.End(k.Buf)
}

func (k *frameKeys) entry(e *storage.Entry, at place) {
	if e.Kind == storage.SettlementEntry {
		id, _ := storage.ParseID(e.Key) // Check has parsed the key already
		k.End(append(k.key().org(kindRecord, e.OrganizationID).id(id), settlementMark))
		k.End(k.at(at.index))
		return
	}
	k.End(append(k.Buf, entriesKey(e.OrganizationID, e.Kind).place(at)...))
	k.End(k.at(at.index))
	k.End(append(k.Buf, entryKey(e)...))
	k.End(k.key().place(at))
}

func (k *frameKeys) meter(m meter, n int64) {
	k.End(append(k.Buf, meterKey(m.org, m.month)...))
	k.End(binary.BigEndian.AppendUint64(k.Buf, uint64(n)))
}

// tombstone adds the key of an imported tombstone.
func (k *frameKeys) tombstone(org, intent string, id uuid.UUID, leaves string) {
	k.End(k.key().org(kindIntent, org).text(intent))
	k.End(k.key().id(id).text(leaves))
}

// item adds the keys of item i of a frame. If the item is a metered record that was not imported,
// item counts it in months.
func (k *frameKeys) item(f *frame, i int, it *item, months map[meter]int64) error {
	at := place{f.head.Seq, uint32(i)}
	switch it.kind {
	case removedItem, abandonedItem:
	case tombstoneItem:
		k.tombstone(it.org, it.intent, it.id, it.body)
	case recordItem:
		r, err := parseRecord(it.org, it.id, []byte(it.body), nil)
		if err != nil {
			return err
		}
		k.record(r, it.id, at.index)
		k.counts(r)
		if r.Metered() && !f.imported() {
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

// encode returns the items of a sealed batch. They are valid until the next call. If the head's key
// made all signatures, encode leaves them out. They can be computed again, because the leaves of
// the head are the leaves of the batch.
func (b *frameBuffers) encode(
	sealed storage.Batch, ids map[*storage.Record]uuid.UUID, head *receipt.SignedHead,
) [][]byte {
	bare := int(head.Size) == len(sealed.Records)+len(sealed.Entries) &&
		!slices.ContainsFunc(sealed.Records, func(r *storage.Record) bool { return r.Receipt.KeyID != head.KeyID }) &&
		!slices.ContainsFunc(sealed.Entries, func(e *storage.Entry) bool { return e.KeyID != head.KeyID })
	c, all := codec{b: b.rows[:0]}, b.items[:0]
	for _, r := range sealed.Records {
		start := len(c.b)
		c.record(r, ids[r], bare)
		all = append(all, c.b[start:])
	}
	for _, entry := range sealed.Entries {
		start := len(c.b)
		c.entryItem(entry, bare)
		all = append(all, c.b[start:])
	}
	b.rows, b.items = c.b, all
	return all
}

// record writes the item of a record.
func (c *codec) record(r *storage.Record, id uuid.UUID, bare bool) {
	c.item(&item{kind: recordItem, org: r.OrganizationID, id: id})
	c.row(r, bare)
}

// entryItem writes the item of an entry.
func (c *codec) entryItem(e *storage.Entry, bare bool) {
	if e.Kind != storage.SettlementEntry {
		c.item(&item{kind: entryItem, org: e.OrganizationID, entryKind: e.Kind})
		c.entry(e, bare)
		return
	}
	id, _ := storage.ParseID(e.Key) // Check has parsed the key already
	c.item(&item{kind: settlementItem, org: e.OrganizationID, id: id, unapproved: e.Settlement.Unapproved})
	c.settled(e.Settlement, &e.Inclusion, bare)
}

// write appends a frame to the segments. The frame is durable on return. With WriteBehind it is
// durable once asyncSync has synced it. A failure stops the store, because it is unknown which part
// of the frame is on the disk. The caller holds commits.
func (s *Store) write(head []byte, items [][]byte) (number uint64, err error) {
	if err := s.health.Stopped(); err != nil {
		return 0, err
	}
	if s.async != nil {
		if err := s.async.wait(s.stopping); err != nil {
			return 0, err
		}
	}
	if number, err = s.log.Append(head, items); err == nil && s.async == nil {
		err = s.log.Sync()
	}
	if err != nil {
		s.health.Stop("writing the history", err)
	}
	if s.async != nil {
		s.async.wrote()
	}
	return number, s.health.Stopped()
}

// headed returns the last frame that has a head and is not after frame number. It returns
// storage.ErrNotFound if no such frame exists.
func (s *Store) headed(number uint64) (*frame, error) {
	if number == 0 {
		return nil, storage.ErrNotFound
	}
	f, err := s.frame(number)
	if err == nil && f.imported() {
		return s.headed(f.headed)
	}
	return f, err
}

// lastHead returns the newest head. It returns storage.ErrNotFound if the store has no head.
func (s *Store) lastHead() (h receipt.SignedHead, err error) {
	f, err := s.headed(s.log.Last())
	if err != nil {
		return h, err
	}
	return f.head, nil
}
