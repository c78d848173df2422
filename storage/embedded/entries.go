package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// The key of a settlement is the key of its row followed by settlementMark. Therefore a scan of
// rows reads a settlement right after its row. The value of a settlement is
//
//	settled = 02 settlement text(sig) text(kid)
//
// Any other entry has a key of kindEntry that ends with the entry's place in the chain. Its value
// is
//
//	entry = 01 text(key) text(sig) text(kid) text(body)
//
// A key under kindEntryKey leads from the entry's own key to its place.
const (
	settlementMark = 's'
	entryVersion   = 1
	settledVersion = 2
)

// place is the position of a leaf in the chain.
type place struct {
	seq   uint64
	index uint32
}

const placeLen = 8 + 4

func (b key) place(at place) key {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(b, at.seq), at.index)
}

// kindBytes are the kinds of entries in keys.
var kindBytes = map[storage.EntryKind]byte{
	storage.VerdictEntry: 'v', storage.RetentionEntry: 'r', storage.ChangeEntry: 'c',
	storage.ImportEntry: 'i', storage.AbandonEntry: 'a',
}

// entryKindOf returns the kind that has the byte b in kindBytes, or the empty kind.
func entryKindOf(b byte) storage.EntryKind {
	for kind, of := range kindBytes {
		if of == b {
			return kind
		}
	}
	return ""
}

func settlementKey(org string, id uuid.UUID) key { return append(recordKey(org, id), settlementMark) }

func entriesKey(org string, k storage.EntryKind) key {
	return append(orgKey(kindEntry, org), kindBytes[k])
}

func entryKey(e *storage.Entry) key {
	return append(orgKey(kindEntryKey, e.OrganizationID), kindBytes[e.Kind]).text(e.Key)
}

// entryID identifies an entry. The key of a settlement is its decision.
type entryID struct {
	kind     storage.EntryKind
	org, key string
}

// divideEntries divides a batch as [divide] does. The caller holds s.commits.
func (s *Store) divideEntries(batch []*storage.Entry) (existing, fresh []*storage.Entry, err error) {
	name := func(e *storage.Entry) entryID { return entryID{e.Kind, e.OrganizationID, e.Key} }
	return divide(batch, name, func(e *storage.Entry, _ entryID) (*storage.Entry, error) { return s.storedEntry(e) })
}

// storedEntry returns the stored entry with the kind, organization and key of e, or nil. If e is a
// settlement of a decision without a row, storedEntry returns an empty settlement.
func (s *Store) storedEntry(e *storage.Entry) (*storage.Entry, error) {
	if e.Kind == storage.SettlementEntry {
		id, _ := storage.ParseID(e.Key) // Check has parsed the key already
		r, err := s.record(e.OrganizationID, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return &storage.Entry{Kind: e.Kind, OrganizationID: e.OrganizationID, Key: e.Key}, nil
		case err != nil || r.Settlement == nil:
			return nil, err
		}
		return r.SettlementEntry(), nil
	}
	earlier, err := s.entry(e)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return earlier, err
}

// entry returns the stored entry with the organization, kind and key of e, or
// storage.ErrNotFound.
func (s *Store) entry(e *storage.Entry) (*storage.Entry, error) {
	at, err := s.index.Get(entryKey(e))
	if err != nil {
		return nil, err
	}
	v, err := s.index.Get(append(entriesKey(e.OrganizationID, e.Kind), at...))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s %q is missing", errCorruptEntry, e.Kind, e.Key)
	}
	if err != nil {
		return nil, err
	}
	return s.readEntry(e.OrganizationID, e.Kind, v)
}

// Entry implements storage.Log. Like Decided, it waits for a running append.
func (s *Store) Entry(ctx context.Context, org string, kind storage.EntryKind, key string) (*storage.Entry, error) {
	if err := errors.Join(ctx.Err(), checkOrg(org)); err != nil || kindBytes[kind] == 0 {
		return nil, cmp.Or(err, storage.ErrNotFound)
	}
	s.commits.Lock()
	defer s.commits.Unlock()
	return s.entry(&storage.Entry{Kind: kind, OrganizationID: org, Key: key})
}

var errCorruptEntry = fmt.Errorf("a stored entry is %w", storage.ErrCorrupt)

// Entries implements storage.Log.
func (s *Store) Entries(
	ctx context.Context, org string, kind storage.EntryKind, p storage.Page,
) (entries []*storage.Entry, next string, err error) {
	before, err := startOf(kindEntry, org, p, placeLen)
	if err != nil {
		return nil, "", err
	}
	if before != nil && len(before) != placeLen || kindBytes[kind] == 0 {
		return nil, "", storage.ErrBadCursor
	}
	prefix := entriesKey(org, kind)
	upper := prefix.end()
	if before != nil {
		upper = slices.Concat(prefix, before)
	}
	var last []byte
	err = s.index.ScanBack(ctx, prefix, upper, func(k, v []byte) (bool, error) {
		if len(entries) == p.Limit {
			next = cursor(kindEntry, last)
			return true, nil
		}
		e, err := s.readEntry(org, kind, v)
		entries, last = append(entries, e), append(last[:0], k[len(prefix):]...)
		return false, err
	})
	if err != nil {
		return nil, "", err
	}
	return entries, next, nil
}

// record returns the record of a decision with its settlement.
func (s *Store) record(org string, id uuid.UUID) (_ *storage.Record, err error) {
	it, err := s.index.Iter()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	return s.recordAt(it, org, id, nil)
}

// recordAt does what record does, and reads with the iterator it. It returns nil if f does not
// select the record. The key of the settlement follows the key of the row, so one search finds
// both.
func (s *Store) recordAt(it *index.Iterator, org string, id uuid.UUID, f *storage.Filter) (*storage.Record, error) {
	k := recordKey(org, id)
	v, found, err := it.Seek(k)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, storage.ErrNotFound
	}
	r, err := s.readRow(org, id, v, nil, f)
	if r == nil || err != nil {
		return nil, err
	}
	if v, found, err = it.Next(append(k, settlementMark)); found && err == nil {
		err = s.readSettlement(r, v)
	}
	return r, err
}
