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
			err = s.countOne(b, kindPolicy, p.OrganizationID, "policies", maxPolicies)
		case err == nil && p.Version <= newest.Version:
			return c, s.samePolicy(p)
		}
		size := b.document(policyKey(p.OrganizationID, p.PolicyID, p.Version), p)
		return c, errors.Join(err, s.countVersion(b, p.OrganizationID, int64(size), maxPolicies))
	})
}

// countVersion adds size to what the versions of org's policies take, or returns
// a *storage.LimitError when that is more than maxPolicies allow. Versions that
// were stored before they were counted take nothing.
func (s *Store) countVersion(b *batch, org string, size int64, maxPolicies int) error {
	at := countKey(kindVersions, org)
	n, err := s.count(at)
	if err != nil {
		return err
	}
	if limit := maxPolicies * storage.VersionBytes; limit > 0 && n+size > int64(limit) {
		return &storage.LimitError{What: "bytes of policy versions", Limit: limit}
	}
	b.number(at, n+size)
	return nil
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

// countOne adds one to how many documents of kind k org has, or returns a
// *storage.LimitError when that are limit already (0: no limit).
func (s *Store) countOne(b *batch, k kind, org, what string, limit int) error {
	at := countKey(k, org)
	n, err := s.count(at)
	if err != nil {
		return err
	}
	if limit > 0 && n >= int64(limit) {
		return &storage.LimitError{What: what, Limit: limit}
	}
	b.number(at, n+1)
	return nil
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

// ListPolicies implements storage.Policies.
func (s *Store) ListPolicies(ctx context.Context, org string, p storage.Page) ([]*engine.ActionPolicy, string, error) {
	return list(ctx, s, kindPolicy, org, p, versionLen+2, func(_, v []byte) (*engine.ActionPolicy, error) {
		return parse[engine.ActionPolicy](v)
	})
}
