package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/ledger/receipt"
	"writ/storage"
	"writ/storage/embedded/segment"
)

// Until format 5 heads, rows, settlements and entries are the values of their keys.
// moveHistory writes them to the segments, as commits would have:
//
//  1. kindMove gets a key for each leaf, in the order of the chain.
//  2. A frame is written for each head. If the leaves are not those that the head signs, the
//     upgrade fails.
//  3. One batch sets the format. Until then the directory is of format 5, and the next upgrade
//     begins again. Then reindex makes locations of the values; if that is interrupted, the
//     link that is missing has the next start do it.
//
// Rows that were imported have no frame and stay, and so do rows under a head that is not
// there, because an operator has accepted its loss.
//
//	'U' seq(8) index(4) key        a leaf: the key of its row, settlement or entry
//	'U' seq(8) index(4) 'x' hash   what is left of a removed one
type historyMover struct {
	s *Store
	b *batch
	// unmarked reports that rows were removed before leaves were kept, so that a head may
	// lack some.
	unmarked bool
	leaves   *iterator       // over kindMove
	rows     *iterator       // for looking up
	before   receipt.Chain   // the end of the heads that were moved
	last     *storage.Record // whose settlement may follow
	sorted   uint64          // leaves
	progress progress
}

func moveKey(seq uint64, index uint32, of []byte) key {
	return append(key{byte(kindMove)}.place(place{seq, index}), of...)
}

// moveHistory ends in format 6.
func (s *Store) moveHistory() error {
	m := historyMover{s: s, before: receipt.Chain{ID: s.tip.ID}, progress: s.health.progress(0)}
	defer m.progress.end()
	if err := m.sort(); err != nil {
		return err
	}
	m.progress.of = s.tip.Seq
	if err := m.frames(); err != nil {
		return err
	}
	m.progress.end()
	if err := s.log.Sync(); err != nil {
		return err
	}
	return s.beginFrames()
}

// beginFrames sets the format, then the index.
func (s *Store) beginFrames() error {
	b, last := &batch{b: s.db.NewBatch()}, s.log.Last()
	b.deleteAll(key{byte(kindMove)})
	b.deleteAll(key{byte(kindLink), byte(headStream)}) // reindex sets it
	b.number(indexedKey, int64(last))
	b.setFormat(format)
	if b.err != nil {
		return errors.Join(b.err, b.b.Close())
	}
	if err := s.apply(b.b); err != nil {
		return err
	}
	s.indexed = last
	if err := s.reindex(); err != nil {
		return err
	}
	// The values, which nothing leads to any more, go with the tables that name them.
	err := s.db.Compact(context.Background(), key{byte(kindMove)}, key{byte(kindEntry)}.end(), true)
	if err = errors.Join(s.health.stopped(), err); err == nil {
		s.health.log.Info("upgrade: the history is in segments", "frames", last)
	}
	return err
}

// sort writes the keys of kindMove.
func (m *historyMover) sort() error {
	m.b = &batch{b: m.s.db.NewBatch()}
	m.b.deleteAll(key{byte(kindMove)}) // of an interrupted upgrade
	m.progress.begin("upgrade: sorting the history")
	for _, step := range []struct {
		kind kind
		f    func(k, v []byte) error
	}{{kindRecord, m.row}, {kindIntent, m.intent}, {kindEntry, m.entry}, {kindRemoved, m.removed}} {
		lower := key{byte(step.kind)}
		err := m.s.scan(context.Background(), lower, lower.end(), func(k, v []byte) (bool, error) {
			err := step.f(k, v)
			if err == nil {
				err = m.s.spill(m.b)
			}
			return false, err
		})
		if err != nil {
			return errors.Join(err, m.b.b.Close())
		}
	}
	return m.s.apply(m.b.b)
}

// spill writes b if it is large.
func (s *Store) spill(b *batch) error {
	if b.err != nil || b.b.Len() < moved {
		return b.err
	}
	if err := b.b.Commit(pebble.NoSync); err != nil {
		s.health.stop("writing a batch", err)
	}
	if err := s.health.writable(); err != nil {
		return err
	}
	err := b.b.Close()
	b.b = s.db.NewBatch()
	return err
}

// row sorts a row or a settlement.
func (m *historyMover) row(k, v []byte) error {
	org, rest, err := position(k)
	if err != nil {
		return err
	}
	id, settlement, err := parsePosition(rest)
	if err != nil {
		return err
	}
	var leaf receipt.Leaf
	switch {
	case !settlement:
		if m.last, err = parseRecord(string(org), id, v, nil); err == nil {
			leaf, err = m.last.Receipt.Inclusion().Leaf(m.last.Receipt.LeafHash())
		}
	case m.last == nil || m.last.OrganizationID != string(org) || m.last.DecisionID != id.String():
		err = errors.New("a settlement is there, and no such row")
	default:
		if err = settle(m.last, v); err == nil && m.last.Settlement.Receipt.Sig != "" {
			leaf, err = m.last.Settlement.Receipt.Leaf(receipt.EntryLeaf(m.last.SettlementEntry().Body))
		}
	}
	if err != nil {
		return broken(string(org), id, "%w", err)
	}
	m.place(leaf, k)
	return nil
}

// place adds the key of a leaf, unless it is of another chain.
func (m *historyMover) place(leaf receipt.Leaf, of []byte) {
	if leaf.Chain == m.s.tip.ID {
		m.b.set(moveKey(leaf.Seq, leaf.Index, of), nil)
		m.sorted++
		m.progress.tell(m.sorted)
	}
}

// intent sorts the leaves of a removed row.
func (m *historyMover) intent(_, v []byte) error {
	_, left, _, err := parseIntent(v, m.s.tip.ID)
	for _, leaf := range left {
		m.place(leaf, leftOf(leaf.Hash))
	}
	return err
}

// entry sorts an entry.
func (m *historyMover) entry(k, _ []byte) error {
	_, rest, err := position(k)
	if err == nil && len(rest) != 1+placeLen {
		err = fmt.Errorf("%w: its key", errCorruptEntry)
	}
	if err != nil {
		return err
	}
	at := parsePlace(rest[1:])
	m.place(receipt.Leaf{Chain: m.s.tip.ID, Seq: at.seq, Index: at.index}, k)
	return nil
}

func parsePlace(b []byte) place {
	return place{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])}
}

// removed notes that a row was removed before leaves were kept.
func (m *historyMover) removed(_, _ []byte) error {
	m.unmarked = true
	return nil
}

// beforeFrames reports whether the directory is of a format without segments. Those in it
// were left by an interrupted upgrade: if remove is set they are removed.
func (s *Store) beforeFrames(fs vfs.FS, remove bool) (bool, error) {
	v, err := s.get(formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	n, notNumber := strconv.Atoi(string(v))
	if err != nil || notNumber != nil || n >= frameFormat || !remove {
		return notNumber == nil && n < frameFormat, err
	}
	names, err := fs.List(s.health.dir)
	for _, name := range names {
		if segment.IsFile(name) && err == nil {
			err = fs.Remove(fs.PathJoin(s.health.dir, name))
		}
	}
	return true, errors.Join(err, syncDir(s.health.dir, fs))
}
