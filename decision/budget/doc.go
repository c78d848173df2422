// Package budget counts intents for the conditions of rules. It counts how many intents of an
// agent, a session or an organization were allowed in a sliding window, and their cost. See
// [condition.Counter].
//
// When an intent is allowed, the amount that it adds is reserved before the decision is
// committed. The reservation is given back if another decision stands or the action was not
// taken:
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
// So a limit of 20 allows exactly 20, however many intents are decided at once. An intent that
// is sent again before it is decided takes only one place. Nothing is locked while conditions
// run.
//
// A window has [condition.Buckets] parts and moves by one part at a time. So it looks back at
// least its length, and at most a sixtieth more.
//
// # One process
//
// A process that decides alone keeps the windows of a counter in its store ([Config.Journal]), as the commits
// change them, up to a second behind. When a counter is new it is filled from the rows of its window in the
// background. Intents wait for some of the rows. After that their count is not known until all are read
// ([condition.Count.Until]), and they are counted when they are committed. From then on a window that nobody has
// asked for is read with a few look-ups, also after a restart. A crash costs the commits of the last second: they
// are followed again. Windows are in memory while they are not empty. When there are too many of all
// organizations, those of the organizations that have more than their share are dropped. They are read again once
// the store has everything that was counted in them.
//
// The clock may be set. A count is of the rows that were decided within the window before the time of the intent,
// or within a window after it, whatever the clock was meanwhile. So each window and each series knows the parts that
// it has. If others are needed they are read again.
//
// A store without a journal has the rows alone. Each window is read from them when it is needed.
//
// # Replicas
//
// If several processes decide ([Config.Windows]), the store keeps the count of each window. The
// store grants places in the window, and a process may use the places that it was granted.
//
// Each comparison of the rules gives the same answer for every count between two bounds: see
// [condition.Counter.Bounds]. An intent is evaluated with the last count that the store gave,
// less the free places of this process. To reserve, the process takes places that the store has
// granted within the upper bound of that count. So all processes together never allow more than
// the rules were told, even though each process knows an old count. If an evaluation used a
// count that is too small, it gets no place. The process then learns the right count and
// evaluates the intent again.
//
// Package lease says when a process asks the store and when it gives places back. A place is
// used in the part of the window in which it was granted. If the store does not answer, nothing
// is allowed.
package budget
