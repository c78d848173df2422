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

// trimmedKey is the key of the revision up to which changes were trimmed.
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
	return s.index.Scan(ctx, changeKey(after+1, 0), key{byte(kindChange) + 1}, func(_, v []byte) (bool, error) {
		var c storage.Change
		if err := json.Unmarshal(v, &c); err != nil {
			return true, fmt.Errorf("a stored change is %w: %w", storage.ErrCorrupt, err)
		}
		return !f(c), nil
	})
}

// Changes implements storage.Documents.
func (s *Store) Changes(ctx context.Context, after uint64, max int) (changes []storage.Change, err error) {
	err = s.eachChange(ctx, after, func(c storage.Change) bool {
		if n := len(changes); n >= max && changes[n-1].Revision != c.Revision {
			return false
		}
		changes = append(changes, c)
		return true
	})
	return changes, err
}

// Trim implements storage.Documents.
func (s *Store) Trim(ctx context.Context, upTo uint64) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	trimmed, err := s.count(trimmedKey)
	if upTo = min(upTo, s.change); err != nil || upTo <= uint64(trimmed) {
		return err
	}
	if err := errors.Join(ctx.Err(), s.health.writable()); err != nil {
		return err
	}
	b := s.newBatch()
	b.number(trimmedKey, int64(upTo))
	// One by one: ranges would make each later read sort all that were deleted since the last flush.
	err = s.index.Scan(ctx, changeKey(uint64(trimmed)+1, 0), changeKey(upTo+1, 0), func(k, _ []byte) (bool, error) {
		b.delete(k)
		return false, nil
	})
	if err != nil {
		return err
	}
	return s.finish(b)
}
