package embedded

import (
	"context"
	"errors"

	"writ/engine"
	"writ/storage"
)

// PutPolicy implements storage.Policies.
func (s *Store) PutPolicy(ctx context.Context, p *engine.ActionPolicy, maxPolicies int) (created bool, err error) {
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.write(ctx, p.OrganizationID, func(b *batch) (storage.Change, error) {
		c := storage.Change{Kind: storage.PolicyChanged, OrganizationID: p.OrganizationID, ID: p.PolicyID}
		newest, err := s.Policy(ctx, p.OrganizationID, p.PolicyID)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			err = s.countMore(b, kindPolicy, p.OrganizationID, 1, "policies", maxPolicies)
		case err == nil && p.Version <= newest.Version:
			return c, s.samePolicy(p)
		}
		size := b.document(policyKey(p.OrganizationID, p.PolicyID, p.Version), p)
		// Versions that were stored before they were counted take nothing.
		return c, errors.Join(err,
			s.countMore(b, kindVersions, p.OrganizationID, int64(size), "bytes of policy versions", maxPolicies*storage.VersionBytes))
	})
}

// samePolicy returns nil when p's version is stored with p's content, else
// ErrConflict.
func (s *Store) samePolicy(p *engine.ActionPolicy) error {
	stored, err := document[engine.ActionPolicy](s, policyKey(p.OrganizationID, p.PolicyID, p.Version))
	if errors.Is(err, storage.ErrNotFound) || err == nil && !storage.SamePolicy(stored, p) {
		return storage.ErrConflict
	}
	return err
}

// Policy implements storage.Policies.
func (s *Store) Policy(ctx context.Context, org, policyID string) (p *engine.ActionPolicy, err error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	versions := orgKey(kindPolicy, org).escaped(policyID)
	err = s.scan(ctx, versions, versions.end(), func(_, v []byte) (bool, error) {
		p, err = parse[engine.ActionPolicy](v)
		return true, err
	})
	if err == nil && p == nil {
		err = storage.ErrNotFound
	}
	return p, err
}

// EachPolicy implements storage.Policies. It seeks from one policy to the next and
// keeps nothing open meanwhile.
func (s *Store) EachPolicy(ctx context.Context, f func(*engine.ActionPolicy) error) error {
	lower, upper := key{byte(kindPolicy)}, key{byte(kindPolicy) + 1}
	for {
		var p *engine.ActionPolicy
		err := s.scan(ctx, lower, upper, func(k, v []byte) (stop bool, err error) {
			lower = key(k[:max(0, len(k)-versionLen)]).end()
			p, err = parse[engine.ActionPolicy](v)
			return true, err
		})
		if err != nil || p == nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
}

// ListPolicies implements storage.Policies.
func (s *Store) ListPolicies(ctx context.Context, org string, p storage.Page) ([]*engine.ActionPolicy, string, error) {
	return list(ctx, s, kindPolicy, org, p, versionLen+2, func(_, v []byte) (*engine.ActionPolicy, error) {
		return parse[engine.ActionPolicy](v)
	})
}
