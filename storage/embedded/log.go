package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
)

// segmentSize is the size of a segment in bytes. Reading a segment of this size after a crash takes
// a fraction of a second. Its entries take some 25 MB of memory.
const segmentSize = 64 << 20

// openLog opens the segments.
func (s *Store) openLog(fs vfs.FS, size int) (err error) {
	s.log, err = segment.Open(s.health.dir, segment.Options{
		FS: fs, Size: size, Prepare: fs == vfs.Default, ReadOnly: s.options.ReadOnly,
	})
	return err
}

// loadLog reads the tables of the segments. Then it adds to Pebble what follows from the frames after
// the last one that was kept. If Pebble is stale, it lacks some of what follows from the frames before,
// and loadLog derives all of it again.
func (s *Store) loadLog(fs vfs.FS, stale bool) error {
	if err := errors.Join(s.newTables(fs), s.loadTables()); err != nil {
		return err
	}
	if stale {
		return s.recount()
	}
	return s.replay()
}

// replay does for the frames that were not kept what commits and imports do.
func (s *Store) replay() error {
	b, last, months := s.newBatch(), s.log.Last(), make(map[meter]int64, 1)
	if s.options.ReadOnly {
		b.b = s.db.NewIndexedBatch()
	}
	err := s.log.ScanTo(context.Background(), s.kept+1, last, func(stored segment.Frame) error {
		return s.follow(b, stored, months)
	})
	if err != nil || last <= s.kept {
		return err
	}
	for m, n := range months {
		stored, err := s.count(meterKey(m.org, m.month))
		if err != nil {
			return err
		}
		b.number(meterKey(m.org, m.month), stored+n)
	}
	if s.options.ReadOnly {
		s.mergeCounts(b)
		s.state = b.b
		return b.err
	}
	return s.keepWith(b, last, s.apply)
}

// follow adds to b what follows from a frame: counts, and the tombstones of an import. It counts in
// months the metered rows that were not imported.
func (s *Store) follow(b *batch, stored segment.Frame, months map[meter]int64) error {
	f, err := decodeFrame(stored)
	if err != nil {
		return err
	}
	return f.each(func(_ int, it *item) error {
		switch it.kind {
		case tombstoneItem:
			b.set(orgKey(kindIntent, it.org).text(it.intent), append(it.id[:], it.body...))
		case abandonedItem:
			return s.abandon(b, it, f.number)
		case recordItem:
			r, err := parseRecord(it.org, it.id, it.body, nil)
			if err != nil {
				return err
			}
			b.count(r, 1)
			if r.Metered() && !f.imported() {
				months[meter{it.org, storage.MonthOf(r.DecidedAt)}]++
			}
		}
		return nil
	})
}

// frameBuffers are buffers for building a frame. The next frame uses them again.
type frameBuffers struct {
	rows    []byte
	items   [][]byte
	entries []index.Entry
}

// entries adds the entries of a frame's items to the index.
type entries struct {
	tables *index.Tables
	frame  uint64
	add    func(index.Entry)
	org    string // of lists
	lists  index.Lists
	known  bool
}

func (x *entries) of(org string) index.Lists {
	if !x.known || x.org != org {
		x.org, x.lists, x.known = org, x.tables.Lists(org), true
	}
	return x.lists
}

// placeOf returns the place of a row in lists: the first half of its id.
func placeOf(id uuid.UUID) uint64 { return binary.BigEndian.Uint64(id[:]) }

// everyRow is the kind of the list of all rows. The list of those with a decision has that as its kind.
const everyRow = 0

func (x *entries) record(org string, id uuid.UUID, d engine.Decision, intentID string, i int) {
	x.intent(org, intentID, i)
	l := x.of(org)
	for _, kind := range [...]byte{everyRow, byte(d)} {
		x.add(index.Entry{Name: l.List(index.Rows, kind), At: placeOf(id), Frame: x.frame, Item: uint32(i)})
	}
}

func (x *entries) intent(org, intentID string, i int) {
	x.add(index.Entry{Name: x.tables.Hash(org, intentID), Frame: x.frame, Item: uint32(i)})
}

// settled adds a settlement, or what abandons an import.
func (x *entries) settled(org string, id uuid.UUID, i int) {
	x.add(index.Entry{Name: x.of(org).List(index.Settled, 0), At: placeOf(id), Frame: x.frame, Item: uint32(i)})
}

func (x *entries) entry(org string, k storage.EntryKind, entryKey string, i int) {
	x.add(index.Entry{Name: x.tables.Hash(org, keyOf(k, entryKey)), Frame: x.frame, Item: uint32(i)})
	x.add(index.Entry{Name: x.of(org).List(index.Entries, kindBytes[k]), At: x.frame, Frame: x.frame, Item: uint32(i)})
}

// derive calls add with the entries of a frame.
func (s *Store) derive(f segment.Frame, add func(index.Entry)) error {
	x := entries{tables: s.tables, frame: f.Number, add: add}
	for i, b := range f.Items {
		it, err := parseItem(b)
		if err == nil {
			err = x.item(&it, i)
		}
		if err != nil {
			return broken(it.org, it.id, "%w", err)
		}
	}
	return nil
}

func (x *entries) item(it *item, i int) error {
	switch it.kind {
	case recordItem:
		d, intentID, err := it.start()
		x.record(it.org, it.id, d, intentID, i)
		return err
	case tombstoneItem, abandonedItem:
		intentID, _ := storage.CutIntentKey(it.intent)
		if x.intent(it.org, intentID, i); it.kind == abandonedItem {
			x.settled(it.org, it.id, i)
		}
	case settlementItem:
		x.settled(it.org, it.id, i)
	case entryItem:
		k, err := it.entryKey()
		x.entry(it.org, it.entryKind, k, i)
		return err
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
