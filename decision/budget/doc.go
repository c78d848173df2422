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
//		if result.Decision != engine.Allow || r.Reserve() {
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
// counter says the same after a restart. Several processes each count what they allow, and
// what the others allowed until they read the counter.
package budget
