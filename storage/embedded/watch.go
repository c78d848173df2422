package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"writ.example/writ/storage"
)

// changeKey returns the key of a change. number counts the changes of a revision from 0.
func changeKey(revision uint64, number int) key {
	k := binary.BigEndian.AppendUint64(key{byte(kindChange)}, revision)
	return binary.BigEndian.AppendUint32(k, uint32(number))
}

// trimmedKey is the key of the revision up to which all changes were trimmed.
var trimmedKey = key{byte(kindTrimmed)}

// Watch implements storage.Documents.
func (s *Store) Watch(f func(storage.Change)) (stop func()) { return s.watchers.Add(f) }

// eachChange calls f for the changes after a revision, until f returns false.
func (s *Store) eachChange(ctx context.Context, after uint64, f func(storage.Change) bool) error {
	trimmed, err := s.count(trimmedKey)
	// From an earlier revision a scan would step over all changes that were deleted since the last flush.
	if after = max(after, uint64(trimmed)); err != nil || after == math.MaxUint64 {
		return err
	}
	return s.scan(ctx, changeKey(after+1, 0), key{byte(kindChange) + 1}, func(_, v []byte) (bool, error) {
		var c storage.Change
		if err := json.Unmarshal(v, &c); err != nil {
			return true, fmt.Errorf("a stored change is %w: %w", storage.ErrCorrupt, err)
		}
		return !f(c), nil
	})
}

// Changes implements storage.Documents. All organizations have one order, which is that of the commits.
func (s *Store) Changes(ctx context.Context, after storage.Change, max int) (changes []storage.Change, err error) {
	err = s.eachChange(ctx, after.Revision, func(c storage.Change) bool {
		if n := len(changes); n >= max && changes[n-1].Revision != c.Revision {
			return false
		}
		changes = append(changes, c)
		return true
	})
	return changes, err
}

// Trim implements storage.Documents.
func (s *Store) Trim(ctx context.Context, changes []storage.Change) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	trimmed, err := s.count(trimmedKey)
	if err != nil {
		return err
	}
	upTo, revisions := uint64(0), make(map[uint64]bool)
	for _, c := range changes {
		if c.Revision > uint64(trimmed) && c.Revision <= s.change {
			upTo, revisions[c.Revision] = max(upTo, c.Revision), true
		}
	}
	if len(revisions) == 0 {
		return nil
	}
	if err := errors.Join(ctx.Err(), s.health.writable()); err != nil {
		return err
	}
	b := s.newBatch()
	// One by one: ranges would make each later read sort all that were deleted since the last flush.
	err = s.scan(ctx, changeKey(uint64(trimmed)+1, 0), changeKey(upTo+1, 0), func(k, _ []byte) (bool, error) {
		if of := binary.BigEndian.Uint64(k[1:]); revisions[of] {
			b.delete(k)
		} else {
			upTo = min(upTo, of-1)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	b.number(trimmedKey, int64(upTo))
	return s.finish(b)
}
