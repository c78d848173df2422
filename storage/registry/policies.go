package registry

import (
	"cmp"
	"context"
	"errors"
	"math"
	"reflect"
	"strconv"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// PutPolicy stores a version of a policy. If the version is already stored with the same content,
// PutPolicy changes nothing and returns created = false. UpdatedAt does not count as content.
// PutPolicy returns storage.ErrConflict if the version is stored with other content, or if a newer
// version is stored.
//
// It returns a *storage.LimitError if the policy is new and the organization already has
// maxPolicies policies. It also returns this error if all versions of all policies together would
// be larger than maxPolicies times VersionBytes. If maxPolicies is 0, neither limit applies. Until
// an import of the organization is finished, PutPolicy stores nothing and returns
// storage.ErrImporting.
func (r *Registry) PutPolicy(ctx context.Context, p *engine.ActionPolicy, maxPolicies int) (created bool, err error) {
	org := p.OrganizationID
	err = r.update(ctx, org, func(tx storage.Tx) error {
		created = false
		if _, err := storage.Imports.Get(tx, org, ""); !errors.Is(err, storage.ErrNotFound) {
			return cmp.Or(err, storage.ErrImporting)
		}
		stored, err := newest(tx, org, p.PolicyID)
		isNew := errors.Is(err, storage.ErrNotFound)
		switch {
		case err != nil && !isNew:
			return err
		case !isNew && p.Version <= stored.Version:
			return same(tx, p)
		}
		created = true
		size, err := storage.Policies.PutSized(tx, org, p)
		if err != nil {
			return err
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		if err := Tell(tx, org, now, policyRegistered(p, now)); err != nil {
			return err
		}
		return recount(tx, org, func(c *storage.Counts) (err error) {
			if isNew {
				err = raise(&c.Policies, 1, "policies", maxPolicies)
			}
			return errors.Join(err,
				raise(&c.VersionBytes, int64(size), "bytes of policy versions", maxPolicies*VersionBytes))
		})
	})
	return created && err == nil, err
}

func policyRegistered(p *engine.ActionPolicy, at time.Time) storage.Event {
	return storage.Event{
		Type: storage.PolicyRegistered, Subject: "policy/" + p.PolicyID, Fact: strconv.FormatInt(p.Version, 10), At: at,
		Data: map[string]any{"policy_id": p.PolicyID, "version": p.Version, "status": p.Status},
	}
}

// same returns nil if the stored version has p's content, and storage.ErrConflict otherwise.
func same(tx storage.Reader, p *engine.ActionPolicy) error {
	stored, err := storage.Policies.Get(tx, p.OrganizationID, storage.VersionID(p.PolicyID, p.Version))
	if errors.Is(err, storage.ErrNotFound) || err == nil && !reflect.DeepEqual(content(stored), content(p)) {
		return storage.ErrConflict
	}
	return err
}

// content returns p without UpdatedAt and its revision. Empty lists become nil, so that an empty
// list equals a missing list.
func content(p *engine.ActionPolicy) engine.ActionPolicy {
	c := *p
	c.Stored, c.UpdatedAt = engine.Stored{}, time.Time{}
	for _, list := range []*[]string{
		&c.AllowedActionTypes, &c.DeniedActionTypes, &c.AllowedResourcePatterns, &c.BlockedResourcePatterns,
	} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return c
}

// Policy returns the newest version of a policy, or storage.ErrNotFound.
func (r *Registry) Policy(ctx context.Context, org, policyID string) (*engine.ActionPolicy, error) {
	return read(ctx, r, func(tx storage.Reader) (*engine.ActionPolicy, error) { return newest(tx, org, policyID) })
}

// PolicyVersion returns a version of a policy, or storage.ErrNotFound.
func (r *Registry) PolicyVersion(
	ctx context.Context, org, policyID string, version int64,
) (*engine.ActionPolicy, error) {
	return get(ctx, r, storage.Policies, org, storage.VersionID(policyID, version))
}

func newest(tx storage.Reader, org, policyID string) (*engine.ActionPolicy, error) {
	return first(tx, storage.Policies, storage.Query{Org: org, Prefix: storage.Text(policyID)})
}

// EachPolicy calls f with the newest version of every policy of every organization. It stops at the
// first error of f and returns this error. It reads each policy separately, so no transaction is
// open while f runs.
func (r *Registry) EachPolicy(ctx context.Context, f func(*engine.ActionPolicy) error) error {
	q := storage.Query{Every: true}
	for {
		p, err := read(ctx, r, func(tx storage.Reader) (*engine.ActionPolicy, error) {
			return first(tx, storage.Policies, q)
		})
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		q.Org, q.From = p.OrganizationID, storage.EndOfVersions(p.PolicyID)
		if err := f(p); err != nil {
			return err
		}
	}
}

// PolicyVersions returns the versions of a policy, newest first, or storage.ErrNotFound.
func (r *Registry) PolicyVersions(
	ctx context.Context, org, policyID string, p storage.Page,
) (versions []*engine.ActionPolicy, next string, err error) {
	q := storage.Query{Org: org, Prefix: storage.Text(policyID)}
	versions, next, err = page(ctx, r, storage.Policies, byte(storage.PolicyKind), q, p, math.MaxInt, all)
	if err == nil && len(versions) == 0 {
		err = storage.ErrNotFound
	}
	return versions, next, err
}

// ListPolicies returns all versions of all policies of org. The policies are in the order of their
// ids. The versions of one policy are newest first.
func (r *Registry) ListPolicies(
	ctx context.Context, org string, p storage.Page,
) (versions []*engine.ActionPolicy, next string, err error) {
	return list(ctx, r, storage.Policies, org, storage.ByID, p, all)
}
