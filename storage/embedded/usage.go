package embedded

import (
	"context"
	"encoding/binary"
	"fmt"

	"writ/storage"
)

func countKey(k kind, org string) key { return append(orgKey(kindCount, org), byte(k)) }

// countMore adds more to what is counted of kind k of org; see raise.
func (s *Store) countMore(b *batch, k kind, org string, more int64, what string, limit int) error {
	at := countKey(k, org)
	n, err := s.count(at)
	if err != nil {
		return err
	}
	return b.raise(at, n, more, what, limit)
}

// raise adds more to the count of n at a key, or returns a *storage.LimitError
// when that is over limit (0: no limit).
func (b *batch) raise(at key, n, more int64, what string, limit int) error {
	if limit > 0 && n+more > int64(limit) {
		return &storage.LimitError{What: what, Limit: limit}
	}
	b.number(at, n+more)
	return nil
}

// CountPolicies implements storage.Usage.
func (s *Store) CountPolicies(_ context.Context, org string) (int, error) {
	return s.counted(kindPolicy, org)
}

// CountAgents implements storage.Usage.
func (s *Store) CountAgents(_ context.Context, org string) (n storage.AgentCount, err error) {
	if err := checkOrg(org); err != nil {
		return n, err
	}
	if n.Total, err = s.count(countKey(kindAgent, org)); err != nil {
		return n, err
	}
	n.Disabled, err = s.count(countKey(kindDisabled, org))
	return n, err
}

// countAgent changes how many agents org has, or returns a *storage.LimitError:
// see storage.Agents.
func (s *Store) countAgent(ctx context.Context, b *batch, org string, change storage.AgentCount, maxAgents int) error {
	before, err := s.CountAgents(ctx, org)
	if err != nil {
		return err
	}
	after := storage.AgentCount{Total: before.Total + change.Total, Disabled: before.Disabled + change.Disabled}
	added := change.Total > 0 || change.Disabled < 0
	if added && maxAgents > 0 && after.Counted(maxAgents) > int64(maxAgents) {
		return &storage.LimitError{What: "agents", Limit: maxAgents}
	}
	b.number(countKey(kindAgent, org), after.Total)
	b.number(countKey(kindDisabled, org), after.Disabled)
	return nil
}

// CountRules implements storage.Usage.
func (s *Store) CountRules(ctx context.Context, org string) (int, error) {
	if err := checkOrg(org); err != nil {
		return 0, err
	}
	n, err := s.countRules(ctx, org)
	return int(n), err
}

// countRules returns how many rules org has. A directory that was written before
// rules were counted has no count until a rule is added or removed: they are
// counted one by one.
func (s *Store) countRules(ctx context.Context, org string) (int64, error) {
	n, err := s.count(countKey(kindRule, org))
	if n > 0 || err != nil {
		return n, err
	}
	prefix := orgKey(kindRule, org)
	err = s.scan(ctx, prefix, prefix.end(), func(_, _ []byte) (bool, error) {
		n++
		return false, nil
	})
	return n, err
}

func (s *Store) counted(k kind, org string) (int, error) {
	if err := checkOrg(org); err != nil {
		return 0, err
	}
	n, err := s.count(countKey(k, org))
	return int(n), err
}

// Meters implements storage.Usage. It reads the meters of all months, which are
// few: an organization has one a month.
func (s *Store) Meters(ctx context.Context, month storage.Month, f func(org string, decided int64) error) error {
	lower, upper := key{byte(kindMeter)}, key{byte(kindMeter) + 1}
	return s.scan(ctx, lower, upper, func(k, v []byte) (bool, error) {
		org, of, err := parseMeterKey(k)
		if err != nil || of != month {
			return false, err
		}
		if len(v) != 8 {
			return true, fmt.Errorf("decoding a stored meter of %d bytes", len(v))
		}
		return false, f(org, int64(binary.BigEndian.Uint64(v)))
	})
}

func parseMeterKey(k []byte) (org string, month storage.Month, err error) {
	if org, err = orgOf(k); err != nil {
		return "", 0, err
	}
	if rest := k[3+len(org):]; len(rest) == 4 {
		return org, storage.Month(binary.BigEndian.Uint32(rest)), nil
	}
	return "", 0, fmt.Errorf("decoding the key of a meter: %d bytes", len(k))
}
