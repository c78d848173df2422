// Package ledger makes decisions final.
//
// A caller takes a [Reservation] for the organization, which says whether its plan is
// used up, evaluates the intent, commits what it decided and answers with
// the [Outcome], never with its own result:
//
//	reservation, err := l.Reserve(ctx, turn, org, plan.Evaluations)
//	if err != nil {
//		return err // refuse: nothing was decided
//	}
//	result := evaluate(intent, engine.Usage{Exceeded: reservation.Exceeded()})
//	entry := ledger.Entry{Reservation: reservation, Intent: intent, PolicyVersion: v, Result: result}
//	pending, err := l.Enqueue(ctx, []*ledger.Entry{&entry}, false)
//	if err != nil {
//		return err
//	}
//	var outs [1]ledger.Outcome
//	err = pending.Wait(ctx, outs[:])
//
// It may then rely on this:
//
//   - Idempotency. An (organization, intent id) is decided once. Every further
//     commit of it, at any time and in any number, gets the record of the first
//     decision with Replayed set, or [ErrIntentConflict] when the intent differs.
//     The store's write decides which commit was first, so the rule holds across
//     processes that share a store.
//   - Durability before the answer. When Wait returns nil the record, the
//     head that signs it and the meter are durable. When it returns
//     an error there may or may not be a decision: the caller must refuse, and
//     the same intent tried again gets the decision if there is one.
//     A store can be told to acknowledge a batch first and make it durable behind
//     a bounded queue that drops nothing (AUDIT_ACK=queued, see below).
//   - One signature and one write a batch. Commits that arrive while a batch is
//     being written form the next batch. A commit does not wait for others to
//     arrive: on an idle ledger a decision is a batch of its own.
//   - An unbroken chain. Each batch's head carries the hash of the head before it.
//     If it is not known whether a batch was stored, the ledger appends the same
//     batch again before any other.
//   - A limit that is never passed. A reservation within the limit holds a place that
//     the store has granted. This is exact for any number of reservations at once,
//     in all processes that share the store.
//
// # Time
//
// A decision's time is when its place was reserved, not when it was written: an allow
// whose DecidedAt lies after a kill switch was thrown was evaluated after it.
// The decision id is a UUIDv7 of the same millisecond, the meter's month is the
// one it falls in (UTC), and the receipt expires TTL after it.
//
// # Entries
//
// Settlements, removals, changes of documents and imports are entries of the same chain
// and become final like a decision: [Ledger.Settle], [Ledger.Retain],
// [Ledger.SignChanges], [Ledger.SignImport]. Each is unique under its key, has a receipt,
// and is proved by [Prove].
//
// # Imported rows
//
// A row under a head of a chain that the store does not have is foreign: it was decided
// in another store and imported ([storage.Importer]). Its receipt proves it, with a key
// that must be trusted. One entry, [Import], holds the root of the leaves of all foreign
// rows of an organization, so that none can be missing, added or replaced. Without this
// entry a foreign row is a break, unless an import is under way. A settlement that is
// posted later is an entry of the store's own chain. Retention removes foreign rows like
// others. No meter counts them: the meter of the month in which an organization has moved
// starts at zero.
//
// # Acknowledging before durability
//
// With AUDIT_ACK=queued the store's log is the queue. A batch is decided, signed and
// written as always and can be read from then on; only its sync happens after the answer.
// Idempotency holds while the process lives: a replay and a concurrent duplicate find an
// intent that was answered and is not durable yet. The number of batches that are not
// durable is bounded, and the next batch waits. A failed sync stops the store, which
// refuses everything after it. A process that stops in order syncs all batches.
//
// A crash (kill -9, loss of power) can lose the last batches, never one from between:
// the log is one sequence. With them are lost
//
//   - their rows of the history and their counts in the meter;
//   - idempotency of their intents, which are decided again when they are sent again;
//   - the guarantee that a head has one successor: a receipt given out for a lost
//     decision still verifies offline, under a head that the chain does not have, and
//     the chain continues with another head of the same sequence number.
//
// # Intent digest
//
// The intent digest is "sha256:" and the hex SHA-256 of the intent's RFC 8785
// canonical JSON, with the members that the caller sent: cost and metadata are
// left out when they were absent. An intent in a session has the member session_id, as the
// last. The intent of this canonical JSON
//
//	{"action_type":"deploy","agent_id":"ci","intent_id":"7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11","issued_at":"2026-11-21T10:00:00Z","policy_id":"2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20","resource":"prod/web"}
//
// has the digest
//
//	sha256:f6a0c8b91690eb357004872900c098be529214532e8935b2a2636a50cb45fa5b
//
// # What is stored
//
// The audit projection is all that is kept of a request: see [Mode].
package ledger
