package storage

import (
	"context"
	"reflect"
	"time"

	"writ/engine"
)

// VersionBytes is how much room the versions of an organization's policies may
// take for each policy that its plan allows: some five hundred versions of a
// policy of 2 KB. Versions are kept for good, so without a bound one
// organization could fill the disk of all.
const VersionBytes = 1 << 20

// Policies keeps every version of every policy.
type Policies interface {
	// PutPolicy stores a version. It must return ErrConflict when a version
	// that is equal or newer is stored, unless that same version is stored with
	// the same content (UpdatedAt aside), which must succeed and change
	// nothing. created tells the two successes apart. It must return a
	// *LimitError when the version is a new policy's first and the
	// organization has maxPolicies policies already, and when the versions of all
	// its policies would take more than maxPolicies times VersionBytes, as the
	// store encodes them (0: no limit of either kind).
	PutPolicy(ctx context.Context, p *engine.ActionPolicy, maxPolicies int) (created bool, err error)
	// Policy returns the newest version, or ErrNotFound.
	Policy(ctx context.Context, org, policyID string) (*engine.ActionPolicy, error)
	// EachPolicy calls f with the newest version of every policy of every
	// organization, until f returns an error.
	EachPolicy(ctx context.Context, f func(*engine.ActionPolicy) error) error
	// ListPolicies returns all versions of all policies of org, newest version
	// first within a policy, policies by id.
	ListPolicies(ctx context.Context, org string, p Page) (versions []*engine.ActionPolicy, next string, err error)
}

// LimitError reports that a plan's limit on stored documents is reached.
type LimitError struct {
	// What is the meter's name, such as "agents"; Limit is its limit.
	What  string
	Limit int
}

// Error implements error.
func (e *LimitError) Error() string { return "the plan's limit of " + e.What + " is reached" }

// SamePolicy reports whether a and b are the same content: equal but for
// UpdatedAt, an empty list being the same as none.
func SamePolicy(a, b *engine.ActionPolicy) bool {
	return reflect.DeepEqual(policyContent(a), policyContent(b))
}

func policyContent(p *engine.ActionPolicy) engine.ActionPolicy {
	c := *p
	c.UpdatedAt = time.Time{}
	lists := []*[]string{
		&c.AllowedActionTypes, &c.DeniedActionTypes,
		&c.AllowedResourcePatterns, &c.BlockedResourcePatterns,
	}
	for _, list := range lists {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return c
}
