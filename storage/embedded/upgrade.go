package embedded

import (
	"context"
	"errors"
	"strconv"

	"writ/storage"
)

// upgrade writes what format 1 does not have, in one write with the number of
// the format: an opening that is cut short is done again. Format 2 lacks nothing:
// its rows are read as they are.
func (s *Store) upgrade() error {
	b := &batch{b: s.db.NewBatch()}
	lower := key{byte(kindToken)}
	err := s.scan(context.Background(), lower, lower.end(), func(_, v []byte) (bool, error) {
		t, err := parse[storage.Token](v)
		if err == nil {
			b.indexToken(t)
		}
		return false, err
	})
	b.set(formatKey, strconv.AppendInt(nil, format, 10))
	if err := errors.Join(err, b.err); err != nil {
		return errors.Join(err, b.b.Close())
	}
	return s.apply(b.b)
}
