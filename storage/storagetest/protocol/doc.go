// Package protocol is a model of how replicas that share one store decide: small
// enough to explore every state of it, and to replay what a real store did. Tests
// alone use it.
//
// A replica decides intents in batches. A batch is one transaction, which stores the
// rows that are first and the head that signs them on the replica's chain. The model
// has these faults. The answer of a commit is lost, and the commit took effect before, takes
// effect later or never. The primary is lost, with all writes that a majority does not have.
// Replicas crash, restart and freeze. A live replica is given up, and another goes on with
// its chain. An agent is switched off. Places of a meter are granted and returned. [World]
// says how much of each there is.
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
// Each [Mechanism] keeps one of them: a test drops it and shows the shortest trace to
// where the invariant breaks. The chain is kept twice. Where a transaction sees the holder of
// the slot, and giving a replica up ends its transactions, the keys of heads can't conflict.
// Where neither is so, these keys alone keep decisions and chains.
//
// No clock keeps an invariant but bound: a replica may be given up at any time, rightly
// or not.
//
// # What is not in it
//
// A handful of replicas, intents and heads stand for any number. A head is identified by its
// place and its number of leaves. Giving a replica up is one step, although a store takes its
// slot, ends its transactions, counts its decisions and frees its places one after the other:
// nothing that another replica sees in between changes what is stored.
// Records that are stored all or none, entries, retention and documents other than one
// switch are left out.
//
// # Replaying a real store
//
// A [Recorder] writes what handles on a store append, one [Event] a line, and [Replay]
// says whether the model can do the same. Replay finds the events that cannot be seen from
// outside: a commit that takes effect late, a rollback, a slot that is lost. A test of faults
// wraps each handle with [Recorder.Handle] before a ledger gets it, notes a Crash where
// it kills one and SlotLost where it has one given up, and replays the trace once all calls
// have returned. The switch and the grants are not replayed.
package protocol
