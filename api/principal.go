package api

import (
	"time"

	"writ/engine"
	"writ/ledger"
)

// principal is the operator or key that a request acts for.
type principal struct {
	org     string
	subject string // the operator's sub or the API key's id
	scopes  scopeSet
	expires time.Time // zero: never
	isKey   bool      // an API key, not an operator
	// agents is the binding of a key, nil if it has none. policy is the key's policy for
	// requests that name none, if any.
	agents *engine.AgentPattern
	policy string
}

// bytes is the approximate size of p in a cache.
func (p *principal) bytes() int64 {
	n := credentialBytes + len(p.org) + len(p.subject) + len(p.policy)
	if p.agents != nil {
		n += p.agents.Size()
	}
	return int64(n)
}

// credential names p in the rows of the history.
func (p *principal) credential() string {
	if p.isKey {
		return p.subject
	}
	return ledger.OperatorPrefix + p.subject
}

func (p *principal) expired(now time.Time) bool {
	return !p.expires.IsZero() && !now.Before(p.expires)
}
