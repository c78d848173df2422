// Package ledger makes decisions final.
//
// A caller first takes a [Reservation] for the organization. The reservation says whether
// the organization's plan is used up. The caller then evaluates the intent, commits the
// result and answers with the [Outcome], never with its own result:
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
// The ledger then promises:
//
//   - Idempotency. An intent id of an organization is decided once. Every later commit of
//     the same id gets the record of the first decision with Replayed set, or
//     [ErrIntentConflict] if the intent differs. The store's write decides which commit
//     was first, so this holds across processes that share a store.
//   - Durability before the answer. When Wait returns nil the record, the
//     head that signs it and the meter are durable. When it returns an error, it is not
//     known whether a decision was stored, so the caller must refuse. If a decision was
//     stored, a further commit of the same intent gets it. With AUDIT_ACK=queued the
//     store acknowledges a batch first and makes it durable later, from a bounded queue
//     that drops nothing: see below.
//   - One signature and one write for each batch. Commits that arrive while a batch is
//     being written form the next batch. A commit does not wait for other commits to
//     arrive. On an idle ledger each decision is a batch.
//   - An unbroken chain. Each batch's head carries the hash of the head before it.
//     If it is not known whether a batch was stored, the ledger appends the same
//     batch again before any other.
//   - A limit that is never exceeded. A reservation within the limit holds a place that
//     the store has granted. This holds for any number of concurrent reservations, in all
//     processes that share the store.
//
// # Time
//
// A decision's time is the time of its reservation, not the time of its write. So if an
// allow's DecidedAt is after the time at which a kill switch was set, the allow was
// evaluated after that time. The decision id is a UUIDv7 of the same millisecond. The
// decision counts in the meter of the month of this time, in UTC. The receipt expires TTL
// after this time.
//
// # Entries
//
// Settlements, removals, changes of documents and imports are entries of the same chain.
// They become final as decisions do: [Ledger.Settle], [Ledger.Retain],
// [Ledger.SignChanges], [Ledger.SignImport]. Each is unique under its key, has a receipt,
// and is proved by [Prove].
//
// # Imported rows
//
// A foreign row was decided in another store and imported ([storage.Importer]). Its head
// belongs to a chain that this store does not have. Its receipt proves it, with a key
// that must be trusted. For each organization one entry, [Import], holds a Merkle root
// over all foreign rows, so that no row can be missing, added or replaced. Without this
// entry a foreign row is a break of the history, unless an import is under way. A
// settlement that is posted after the import is an entry of the store's own chain.
// Retention removes foreign rows like other rows. Meters do not count foreign rows. In
// the month in which an organization moves, its meter starts at zero.
//
// # Acknowledging before durability
//
// With AUDIT_ACK=queued the store's log is the queue. A batch is decided, signed and
// written as always, and can be read from then on. Only the sync of the log happens after
// the answer. Idempotency holds while the process lives, because a replay or a concurrent
// duplicate also finds intents that were answered and are not durable yet. The number of
// batches that are not durable is bounded. At this bound the next batch waits. After a
// failed sync the store refuses everything. A process that shuts down normally syncs all
// batches.
//
// A crash (kill -9, loss of power) can lose the last batches. The log is one sequence, so
// a batch is never lost before one that is kept. A crash that loses batches also loses
//
//   - their rows of the history and their counts in the meter;
//   - the idempotency of their intents: an intent that is sent again is decided again;
//   - the guarantee that a head has one successor. The receipt of a lost decision still
//     verifies offline, under a head that the chain does not have. The chain continues
//     with another head of the same sequence number.
//
// # Intent digest
//
// The intent digest is "sha256:" and the hex SHA-256 of the intent's RFC 8785
// canonical JSON, with the members that the caller sent: cost and metadata are
// left out when they were absent. An intent in a session has session_id as its last
// member. The intent of this canonical JSON
//
//	{"action_type":"deploy","agent_id":"ci","intent_id":"7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11","issued_at":"2026-11-21T10:00:00Z","policy_id":"2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20","resource":"prod/web"}
//
// has the digest
//
//	sha256:f6a0c8b91690eb357004872900c098be529214532e8935b2a2636a50cb45fa5b
//
// # What is stored
//
// Only the audit projection of a request is kept: see [Mode].
package ledger
