package registry

import (
	"context"
	"errors"
	"math"
	"time"

	"writ.example/writ/storage"
)

// VersionBytes bounds the total size of an organization's policy versions. The bound is
// VersionBytes times the number of policies that the plan allows. One VersionBytes holds about 500
// versions of a policy of 2 KB. Versions are never deleted, so without a bound one organization
// could fill the disk.
const VersionBytes = 1 << 20

// AgentCount is the number of an organization's agents.
type AgentCount struct {
	Total    int64
	Disabled int64 // how many of Total are disabled
}

// disabledFree bounds the disabled agents that do not count: ten for each agent that a plan
// allows. Without a bound, disabled agents would be free storage.
const disabledFree = 10

// Counted returns how many agents count towards a plan's limit. All enabled agents count. Disabled
// agents count only beyond ten times the limit.
func (c AgentCount) Counted(maxAgents int) int64 {
	return c.Total - min(c.Disabled, disabledFree*int64(maxAgents))
}

// counts returns the document with org's counts. Every write that adds or removes a counted
// document also changes it.
func counts(tx storage.Reader, org string) (storage.Counts, error) {
	c, err := storage.AllCounts.Get(tx, org, "")
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Counts{}, nil
	}
	if err != nil {
		return storage.Counts{}, err
	}
	return *c, nil
}

// recount stores org's counts after f has changed them. It returns f's error.
func recount(tx storage.Tx, org string, f func(*storage.Counts) error) error {
	c, err := counts(tx, org)
	if err != nil {
		return err
	}
	if err := f(&c); err != nil {
		return err
	}
	return storage.AllCounts.Put(tx, org, &c)
}

// raise adds to the count n. If n then exceeds the limit, raise returns a *storage.LimitError. A
// limit of 0 means no limit.
func raise(n *int64, more int64, what string, limit int) error {
	if *n += more; limit > 0 && *n > int64(limit) {
		return &storage.LimitError{What: what, Limit: limit}
	}
	return nil
}

// Usage counts the documents of an organization that its plan limits.
type Usage struct {
	Agents   AgentCount
	Policies int // a policy with several versions counts once
	Rules    int // active or inactive
	Tokens   int // neither revoked nor expired
}

// Usage returns what org has at the given time, from one snapshot. It reads one index entry for each usable token.
func (r *Registry) Usage(ctx context.Context, org string, at time.Time) (Usage, error) {
	return read(ctx, r, func(tx storage.Reader) (Usage, error) {
		c, err := counts(tx, org)
		if err != nil {
			return Usage{}, err
		}
		tokens, err := usableTokens(tx, org, at, math.MaxInt)
		return Usage{AgentCount{c.Agents, c.Disabled}, int(c.Policies), int(c.Rules), tokens}, err
	})
}

// usableTokens counts org's usable tokens, up to most. It does not read expired tokens, because
// there may be very many.
func usableTokens(tx storage.Reader, org string, at time.Time, most int) (n int, err error) {
	q := storage.Query{Kind: storage.TokenKind, Org: org, Index: storage.ByExpiry, From: storage.Time(at.Add(1)),
		Bare: true}
	err = tx.Scan(q, func([]byte, storage.Document) (bool, error) {
		n++
		return n < most, nil
	})
	return n, err
}
