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
// are read as they are. Neither has links nor a noted tip: what the directory holds
// is taken for all that it ever held. The tip is noted first, so that a store of
// this format without one has lost it.
func (s *Store) upgrade() error {
	t := s.end()
	if err := s.noteTip(t); err != nil {
		return err
	}
	s.health.log.Info("nothing has noted yet how far this store has come: it is taken as it is", "dir", s.health.dir, "head", t.Head)
	b := &batch{b: s.db.NewBatch()}
	b.begin(t)
	tokens, agents := key{byte(kindToken)}, key{byte(kindAgent)}
	err := s.scan(context.Background(), tokens, tokens.end(), func(_, v []byte) (bool, error) {
		t, err := parse[storage.Token](v)
		if err == nil {
			b.indexToken(t)
		}
		return false, err
	})
	off := make(map[string]int64)
	err = errors.Join(err, s.scan(context.Background(), agents, agents.end(), func(k, v []byte) (bool, error) {
		org, orgErr := orgOf(k)
		a, err := parse[engine.Agent](v)
		if err = errors.Join(orgErr, err); err == nil {
			b.indexAgent(org, a)
			off[org] += disabled(a.Status)
		}
		return false, err
	}))
	for org, n := range off {
		b.number(countKey(kindDisabled, org), n)
	}
	b.set(formatKey, strconv.AppendInt(nil, format, 10))
	if err := errors.Join(err, b.err); err != nil {
		return errors.Join(err, b.b.Close())
	}
	return s.apply(b.b)
}
