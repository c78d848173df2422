package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// A settlement of a decision and any other entry are items of the frame whose head signs them:
//
//	settled = 02 settlement text(sig) text(kid)
//	entry   = 01 text(key) text(sig) text(kid) text(body)
const (
	entryVersion   = 1
	settledVersion = 2
)

// kindBytes are the kinds of entries in items.
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

// keyOf returns the text that is hashed to find an entry.
func keyOf(k storage.EntryKind, entryKey string) string { return string(kindBytes[k]) + entryKey }

// entryKey returns the key of an entry. It reads only the start of the item.
func (it *item) entryKey() (k string, err error) {
	c := codec{reads: true, rest: it.body}
	c.version(entryVersion)
	c.text(&k)
	return k, c.err
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
	name := s.tables.Hash(e.OrganizationID, keyOf(e.Kind, e.Key))
	if s.tables.Lacks(name) {
		return nil, storage.ErrNotFound
	}
	c := s.tables.Cursor(name, true, 0, 0)
	c.Seek(0)
	for {
		at, ok, err := c.Next()
		if err == nil && !ok {
			err = storage.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		found, err := s.readEntry(e.OrganizationID, e.Kind, location{at.Frame, at.Item})
		if err != nil || found != nil && found.Key == e.Key {
			return found, err
		}
	}
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

// Entries implements storage.Log. A cursor has the frame and the index of the last entry of its page.
func (s *Store) Entries(
	ctx context.Context, org string, kind storage.EntryKind, p storage.Page,
) (entries []*storage.Entry, next string, err error) {
	after, err := startOf(kindEntry, org, p, 8+4)
	if err != nil {
		return nil, "", err
	}
	if after != nil && len(after) != 8+4 || kindBytes[kind] == 0 {
		return nil, "", storage.ErrBadCursor
	}
	last := location{math.MaxUint64, math.MaxUint32}
	if after != nil {
		last = location{binary.BigEndian.Uint64(after), binary.BigEndian.Uint32(after[8:])}
	}
	c := s.tables.Cursor(s.tables.Lists(org).List(index.Entries, kindBytes[kind]), true, 0, last.frame)
	c.Seek(last.frame)
	for {
		at, ok, err := c.Next()
		if err = errors.Join(err, ctx.Err()); !ok || err != nil {
			return entries, "", err
		}
		if at.Frame == last.frame && at.Item >= last.index {
			continue
		}
		e, err := s.readEntry(org, kind, location{at.Frame, at.Item})
		if err != nil {
			return nil, "", err
		}
		switch {
		case e == nil: // of another organization with the same hash
		case len(entries) == p.Limit:
			position := binary.BigEndian.AppendUint64(nil, last.frame)
			return entries, cursor(kindEntry, binary.BigEndian.AppendUint32(position, last.index)), nil
		default:
			entries, last = append(entries, e), location{at.Frame, at.Item}
		}
	}
}
