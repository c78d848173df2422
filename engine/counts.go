package engine

import "writ.example/writ/engine/condition"

// Counts returns the values of counters, with in counted. before returns the value without in. It
// is called only for counters that count in.
func Counts(counters []*condition.Counter, in *Intent, before func(*condition.Counter) int64) []condition.Count {
	if len(counters) == 0 {
		return nil
	}
	counts := make([]condition.Count, len(counters))
	for i, c := range counters {
		counts[i] = condition.Count{Counter: c, N: condition.Uncounted}
		if amount, counted := in.Counted(c); counted {
			counts[i].N = condition.Saturated(before(c), amount)
		}
	}
	return counts
}

// Alone returns the values of counters if no other intent was allowed before in.
func Alone(counters []*condition.Counter, in *Intent) []condition.Count {
	return Counts(counters, in, func(*condition.Counter) int64 { return 0 })
}

// Counted returns the amount that the intent adds to c, and whether c counts it.
func (in *Intent) Counted(c *condition.Counter) (amount int64, counted bool) {
	var cost Cost
	if in.Cost != nil {
		cost = *in.Cost
	}
	if !c.Counts(in.ActionType, cost.Currency, in.SessionID) {
		return 0, false
	}
	if c.Sum {
		return cost.AmountMinor, true
	}
	return 1, true
}
