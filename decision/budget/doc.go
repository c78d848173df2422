// Package budget keeps what the counters of rules have come to: how many intents of an
// agent, a session or an organization were allowed in a sliding window, and what they
// cost. See [condition.Counter].
//
// What an intent adds is reserved when it is allowed, before the decision is committed,
// and given back where another decision stands or the action was not taken:
//
//	for {
//		r, err := counters.Read(ctx, org, set.Rules.Counters(), intent, session, at)
//		input.Counts = r.Counts()
//		result := engine.Evaluate(…)
//		if result.Decision != engine.Allow {
//			break
//		}
//		if ok, err := r.Reserve(ctx); ok || err != nil {
//			break // otherwise another intent was allowed meanwhile
//		}
//	}
//	…commit; where the intent was not allowed by it: r.Release()
//
// so that a limit of 20 allows exactly 20, however many are decided at once. An intent that
// is sent again before it is decided takes one place. Nothing is locked while conditions
// run.
//
// A window has [condition.Buckets] parts and moves by one of them at a time: it looks back
// no less than its length and at most a sixtieth more. A counter is read from the history
// when it is first asked for, and kept in memory while its window is not empty and there
// is room; what is forgotten is read again. Where the history holds what was reserved a
// counter says the same after a restart.
//
// # Replicas
//
// Where several processes decide ([Config.Windows]) the store keeps what a window has come
// to, and a process keeps the places that it was granted. What the comparisons of all rules
// take alike is between two bounds ([condition.Counter.Bounds]). An intent is evaluated
// with what the store said last, less the places that are free here; to reserve it, the
// process takes places that the store has granted within the bound above that number. So
// what all processes allow comes to no more than each rule was told, though what they know
// of each other is old: an evaluation with too small a number gets no place, learns the
// right one and is made again.
//
// Package lease says when the store is asked, and what is given back. Places are used in the
// part of the window that they were granted in. Nothing about a window is kept here that
// the store does not have, and nothing is allowed where it does not answer.
package budget
