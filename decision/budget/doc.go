// Package budget counts for the conditions of rules how many intents of an agent, a session
// or an organization were allowed in a sliding window, and their cost. See
// [condition.Counter].
//
// The amount that an intent adds is reserved when the intent is allowed, before the decision
// is committed. It is given back if another decision stands or the action was not taken:
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
//	…commit; if that did not allow the intent: r.Release()
//
// So a limit of 20 allows exactly 20, however many are decided at once. An intent that is
// sent again before it is decided takes one place. Nothing is locked while conditions run.
//
// A window has [condition.Buckets] parts and moves by one of them at a time: it looks back
// no less than its length and at most a sixtieth more. A window is read from the history
// when it is first needed, and kept in memory while it is not empty and there is room.
// After that, and after a restart, it is read again.
//
// # Replicas
//
// If several processes decide ([Config.Windows]), the store keeps the count of each window
// and grants places in it. A process may use the places that it was granted.
//
// All comparisons of the rules give the same answers for any count between two bounds:
// see [condition.Counter.Bounds]. An intent is evaluated with the store's last count, less
// the free places of this process. To reserve, the process takes places that the store has
// granted within the upper bound of that count. So all processes together never allow more
// than a rule was told, though each knows an old count. An evaluation with a count that is
// too small gets no place, learns the right count and is made again.
//
// Package lease says when the store is asked and when places are given back. Places are
// used in the part of the window in which they were granted. If the store does not answer,
// nothing is allowed.
package budget
