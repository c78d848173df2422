package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"writ/engine"
	"writ/storage"
)

func ruleKey(org, id string) key { return orgKey(kindRule, org).text(id) }

// PutRule implements storage.Rules.
func (s *Store) PutRule(ctx context.Context, org string, r *engine.Rule, maxRules int) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.putRule(ctx, org, r, maxRules)
}

// putRule is PutRule for who holds writes.
func (s *Store) putRule(ctx context.Context, org string, r *engine.Rule, maxRules int) error {
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		b.document(ruleKey(org, r.ID), r)
		_, err := s.get(ruleKey(org, r.ID))
		if errors.Is(err, storage.ErrNotFound) {
			err = s.countRule(ctx, b, org, maxRules)
		}
		return storage.Change{Kind: storage.RulesChanged, OrganizationID: org}, err
	})
	return err
}

// countRule counts one rule more, or returns a *storage.LimitError when org has
// limit rules already.
func (s *Store) countRule(ctx context.Context, b *batch, org string, limit int) error {
	n, err := s.countRules(ctx, org)
	if err != nil {
		return err
	}
	return b.raise(countKey(kindRule, org), n, 1, "rules", limit)
}

// UpdateRule implements storage.Rules.
func (s *Store) UpdateRule(
	ctx context.Context, org, ruleID string, f func(engine.Rule) (engine.Rule, error),
) (*engine.Rule, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	stored, err := document[engine.Rule](s, ruleKey(org, ruleID))
	if err != nil {
		return nil, err
	}
	r, err := f(*stored)
	if err != nil {
		return nil, err
	}
	if r.ID != ruleID {
		return nil, fmt.Errorf("updating rule %s: its id became %s", ruleID, r.ID)
	}
	if err := s.putRule(ctx, org, &r, 0); err != nil {
		return nil, err
	}
	return &r, nil
}

// DeleteRule implements storage.Rules.
func (s *Store) DeleteRule(ctx context.Context, org, ruleID string) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	_, err := s.write(ctx, org, func(b *batch) (storage.Change, error) {
		k := ruleKey(org, ruleID)
		b.delete(k)
		if _, err := s.get(k); err != nil {
			return storage.Change{}, err
		}
		n, err := s.countRules(ctx, org)
		b.number(countKey(kindRule, org), n-1)
		return storage.Change{Kind: storage.RulesChanged, OrganizationID: org}, err
	})
	return err
}

// AllRules implements storage.Rules.
func (s *Store) AllRules(ctx context.Context, org string) ([]engine.Rule, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	var rules []engine.Rule
	prefix := orgKey(kindRule, org)
	err := s.scan(ctx, prefix, prefix.end(), func(_, v []byte) (bool, error) {
		r, err := parse[engine.Rule](v)
		if err != nil {
			return true, err
		}
		rules = append(rules, *r)
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rules, storage.CompareRules)
	return rules, nil
}
