package embedded

import (
	"context"
	"errors"
	"strconv"

	"writ/engine"
	"writ/storage"
)

// upgrade writes what formats 1 and 2 do not have, in one write with the number
// of the format: an opening that is cut short is done again. Their history rows
// are read as they are.
func (s *Store) upgrade() error {
	b := &batch{b: s.db.NewBatch()}
	tokens, agents := key{byte(kindToken)}, key{byte(kindAgent)}
	err := s.scan(context.Background(), tokens, tokens.end(), func(_, v []byte) (bool, error) {
		t, err := parse[storage.Token](v)
		if err == nil {
			b.indexToken(t)
		}
		return false, err
	})
	err = errors.Join(err, s.scan(context.Background(), agents, agents.end(), func(k, v []byte) (bool, error) {
		org, orgErr := orgOf(k)
		a, err := parse[engine.Agent](v)
		if err = errors.Join(orgErr, err); err == nil {
			b.indexAgent(org, a)
		}
		return false, err
	}))
	b.set(formatKey, strconv.AppendInt(nil, format, 10))
	if err := errors.Join(err, b.err); err != nil {
		return errors.Join(err, b.b.Close())
	}
	return s.apply(b.b)
}
