package embedded

import (
	"context"
	"errors"
	"strconv"

	"writ/engine"
	"writ/storage"
)

// upgrade writes what an earlier format does not have, in one write with the
// number of this one: an opening that is cut short is done again. History rows of
// every format are read as they are.
func (s *Store) upgrade(from int) error {
	b := &batch{b: s.db.NewBatch()}
	b.set(formatKey, strconv.AppendInt(nil, format, 10))
	if from < linkedFormat {
		if err := s.addLinks(b); err != nil {
			return errors.Join(err, b.b.Close())
		}
	}
	if b.err != nil {
		return errors.Join(b.err, b.b.Close())
	}
	return s.apply(b.b)
}

// addLinks puts what formats 1 and 2 do not have into b. Neither has links nor a
// noted tip: what the directory holds is taken for all that it ever held. The tip
// is noted first, so that a store of a later format without one has lost it.
func (s *Store) addLinks(b *batch) error {
	t := s.end()
	if err := s.noteTip(t); err != nil {
		return err
	}
	s.health.log.Info("nothing has noted yet how far this store has come: it is taken as it is", "dir", s.health.dir, "head", t.Head)
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
	return err
}
