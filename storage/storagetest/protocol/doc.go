// Package protocol is a model of how replicas that share a store decide. The model is small. A test
// can explore all its states, or replay the events of a real store on it. Only tests use this
// package.
//
// A replica decides intents in batches. A batch is one transaction. The transaction stores the rows
// whose intents have no row yet, and the head that signs them on the replica's chain. A replica need not look up
// which these are: a transaction with a row that exists is not committed. The model has
// these faults. The answer of a commit is lost; the commit took effect, takes effect later, or
// never does. The primary is lost with all writes that a majority does not have. Replicas crash,
// restart and freeze. A live replica is given up, and another replica continues its chain. The store is
// restored while replicas use it, as a whole or in part; what was acknowledged before is then lost. Besides
// faults, an agent can be switched off, and places of a meter are granted and returned. [World]
// sets the size of the model.
//
// # Invariants
//
//	one     An intent has one decision: whatever is acknowledged for it is the same.
//	kept    A decision that was acknowledged is stored for good.
//	chain   Every stored head extends its chain by one and covers exactly the rows stored with it.
//	switch  No allow that starts after the answer of the switch is stored.
//	passed  A replica that the answer of the switch did not wait for stores no allow after it.
//	bound   Nothing is decided by what was replaced longer ago than the bound of freshness.
//	limit   No more decisions within a limit are stored than the limit.
//	live    From every state with a live replica every intent can still be decided, without a fault.
//
// # What keeps them
//
// Each [Mechanism] protects one invariant. For each mechanism, a test leaves this mechanism out. It
// checks the shortest trace to a state in which the invariant is broken. The row of a chain names who may add
// a head, and the number of the last head. A transaction that adds a head changes this row, and giving a
// replica up takes its name out. With this row, the keys of heads never conflict. Without it, the unique keys
// of heads alone protect decisions and chains.
//
// Only bound depends on a clock. A replica may be given up at any time, even if it is live. All
// other invariants hold even then.
//
// # What is not in it
//
// The model has only a few replicas, intents and heads. It identifies a head by its place and its
// number of leaves. Giving a replica up is one step in the model, or two if World.Unsettled is set: the
// slot is taken, and later the chain is closed. A real store then counts the decisions and frees the
// places one after the other. No other replica can see anything in between that changes the stored data. The
// model leaves out records that are stored all or none, entries, retention, and all documents
// except one switch.
//
// # Changes
//
// [Changes] is a second model: how replicas hear of changes, how a switch is answered by the times that all have
// acknowledged, and how changes are signed and trimmed. Its replicas decide from their caches alone. It has
// streams that are late, break and begin again, restores after which times come again, and transactions with updates
// of two organizations, whose rows have one time. An update that fails in such a transaction begins again, as after
// a conflict. Its invariants are
//
//	switch  When the switch is answered, no replica trusts a cache in which the agent is on.
//	order   The changes of an organization are told in the order of their revisions.
//	signed  No change is trimmed that was not signed.
//	bound   As above.
//	live    From every state with a live replica the switch can still be answered, without a fault.
//
// # Replaying a real store
//
// A [Recorder] writes the appends of handles on a store, one [Event] a line. [Replay] says whether
// the model can do the same. Some events cannot be seen from outside, for example a commit that
// takes effect late, a rollback, or the loss of a slot. Replay guesses these. A test of faults
// wraps each handle with [Recorder.Handle] before it gives the handle to a ledger. It notes a Crash
// when it kills a handle, and SlotLost when it has a handle given up. It replays the trace once all
// calls have returned. The switch and the grants are not replayed.
package protocol
