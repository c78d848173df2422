package decision

import (
	"sync"

	"writ.example/writ/engine"
)

// retired keeps the rule sets that a change made stale. When the rules of the organization are
// loaded again, only the rules that changed are compiled. A set that is too old is never wrong,
// only slower, because [engine.RuleSet.Update] compiles every rule whose text differs.
type retired struct {
	max int64 // in bytes

	mu    sync.Mutex
	sets  map[string]*engine.RuleSet
	bytes int64
}

// put keeps rs for org. If rs does not fit beside the kept sets, put drops them all.
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

// take removes the set of org and returns it. It returns nil if no set of org is kept.
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
