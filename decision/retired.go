package decision

import (
	"sync"

	"writ/engine"
)

// retired holds the rule sets that a change made stale until their organization
// is loaded again, which then compiles only the rules that changed. It is a
// saving and nothing more: [engine.RuleSet.Update] compiles whatever is not the same to
// the letter, so a set that is too old is never wrong.
type retired struct {
	max int64 // bytes

	mu    sync.Mutex
	sets  map[string]*engine.RuleSet
	bytes int64
}

// put keeps rs for org, at the cost of all others if they do not fit together.
func (r *retired) put(org string, rs *engine.RuleSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(org)
	if r.bytes+int64(rs.Size()) > r.max {
		clear(r.sets)
		r.bytes = 0
	}
	if int64(rs.Size()) <= r.max {
		r.sets[org] = rs
		r.bytes += int64(rs.Size())
	}
}

// take returns what is kept for org, or nil, and keeps it no longer.
func (r *retired) take(org string) *engine.RuleSet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropLocked(org)
}

func (r *retired) dropLocked(org string) *engine.RuleSet {
	rs := r.sets[org]
	if rs != nil {
		delete(r.sets, org)
		r.bytes -= int64(rs.Size())
	}
	return rs
}
