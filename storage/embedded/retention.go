package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ/engine"
	"writ/storage"
)

// A removal deletes rows and their index by ranges of ids, which costs a few
// tombstones however many rows there are. The rows of kindIntent stay; kindRemoved
// holds the greatest id that was ever removed, by which an intent without a
// record is told from a corrupt one.

func removedKey(org string) key { return orgKey(kindRemoved, org) }

// RemoveRecords implements storage.Retention. It holds writes, as Settle does,
// and not commits: no decision waits for it.
func (s *Store) RemoveRecords(
	ctx context.Context, org string, before time.Time, max int,
) (removed int, err error) {
	if max <= 0 {
		return 0, fmt.Errorf("removing %d records", max)
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	changed, err := s.write(ctx, org, func(b *batch) (c storage.Change, err error) {
		var first, last uuid.UUID
		removed, first, last, err = s.oldest(ctx, org, idAt(before.Add(-storage.MaxSkew)), max)
		if removed == 0 || err != nil {
			return c, err
		}
		b.deleteIDs(orgKey(kindRecord, org), first, last)
		for d := engine.Allow; d <= engine.Deny; d++ {
			b.deleteIDs(byDecisionKey(org, d), first, last)
		}
		return c, s.noteRemoved(b, org, last)
	})
	if !changed || err != nil {
		return 0, err
	}
	return removed, nil
}

// oldest returns how many rows of org have an id less than end, counting max at
// most, and the ids of the first and the last of them.
func (s *Store) oldest(ctx context.Context, org string, end uuid.UUID, max int) (n int, first, last uuid.UUID, err error) {
	prefix := orgKey(kindRecord, org)
	upper := key(bytes.Clone(prefix)).id(end)
	err = s.scan(ctx, prefix, upper, func(k, _ []byte) (stop bool, err error) {
		if last, err = uuid.FromBytes(k[len(prefix):]); err != nil {
			return true, fmt.Errorf("%w: its key: %w", errCorrupt, err)
		}
		if n++; n == 1 {
			first = last
		}
		return n == max, nil
	})
	return n, first, last, err
}

// deleteIDs deletes the keys that continue prefix with an id from first to
// last.
func (b *batch) deleteIDs(prefix key, first, last uuid.UUID) {
	if b.err == nil {
		lower, upper := key(bytes.Clone(prefix)).id(first), append(key(bytes.Clone(prefix)).id(last), 0)
		b.err = b.b.DeleteRange(lower, upper, nil)
	}
}

func (s *Store) noteRemoved(b *batch, org string, last uuid.UUID) error {
	before, err := s.get(removedKey(org))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if bytes.Compare(before, last[:]) < 0 {
		b.set(removedKey(org), last[:])
	}
	return nil
}

// missing returns what is left of a removed record, or errCorrupt if nothing
// has removed the record of decision id.
func (s *Store) missing(i intent, id uuid.UUID) (*storage.Record, error) {
	last, err := s.get(removedKey(i.org))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	if bytes.Compare(id[:], last) > 0 {
		return nil, fmt.Errorf("%w: decision %s is missing", errCorrupt, id)
	}
	return &storage.Record{OrganizationID: i.org, IntentID: i.id, DecisionID: id.String()}, nil
}

// Organizations implements storage.Retention. It seeks from one organization to
// the next and keeps nothing open meanwhile.
func (s *Store) Organizations(ctx context.Context, f func(org string) error) error {
	lower, upper := key{byte(kindRecord)}, key{byte(kindRecord) + 1}
	for {
		org, found := "", false
		err := s.scan(ctx, lower, upper, func(k, _ []byte) (stop bool, err error) {
			org, err = orgOf(k)
			found = true
			return true, err
		})
		if err != nil || !found {
			return err
		}
		if err := f(org); err != nil {
			return err
		}
		lower = orgKey(kindRecord, org).end()
	}
}

// splitOrg returns the organization that b begins with, and what follows it.
func splitOrg(b []byte) (org, rest []byte, err error) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("%d stored bytes have no organization", len(b))
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:n], b[n:], nil
}

// orgOf returns the organization of a key.
func orgOf(k []byte) (string, error) {
	n, err := orgLen(k)
	if err != nil {
		return "", err
	}
	return string(k[3 : 3+n]), nil
}

// orgLen returns how long the organization of a key is; it begins after 3 bytes.
func orgLen(k []byte) (int, error) {
	if len(k) < 3 || len(k) < 3+int(binary.BigEndian.Uint16(k[1:])) {
		return 0, fmt.Errorf("a stored key of %d bytes has no organization", len(k))
	}
	return int(binary.BigEndian.Uint16(k[1:])), nil
}
