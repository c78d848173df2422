// Package mongodb stores all data of a deployment in a MongoDB database. Many replicas of the
// service can use the database at the same time. A handle is one open [Store], so each replica has
// one. The package needs a replica set of MongoDB 5.0 or later. A write method returns when a
// majority of the members has the write in their journals. Reads return only data that a majority
// has.
//
// # Collections
//
// The server orders binary data by length first. Some keys must be in the order of their bytes.
// These keys are strings with one character for each byte (latin-1). text(x) below is
// [storage.Text]. The ids of an intent and of its approval are 16 bytes each.
//
//	documents  {_id: kind text(org) id, o: org, r: revision, v: JSON}
//	index      {_id: kind text(org) index key id, d: _id of the document}
//	changes    {_id: {o: org, r: revision}, u: random id,
//	            c: [{k: kind, o: org, i: id, l: alias, d: digest, a: actor}],
//	            n: how many rows of its transaction follow}
//	           and one mark {_id: {o: "", r: 0}, u: random id, c: []}
//	counters   {_id: "org:" org, n: the last revision of the organization}
//	           {_id: "revision", n: 0, e: random epoch}
//	           {_id: "format", n: schema, least: the least schema that a writ must know}
//	           {_id: "counted:" chain, n: the last head that the meters count, c: counts of the counted heads}
//	replicas   {_id: slot, chain, holder, dead, until, beat, told: cluster time,
//	            last: {o: org, r: revision, u: id of its row},
//	            sessions: [{id, uid: user}], keys: {o: digest of the operator secret, s: [digests of scrub keys]}}
//	records    {_id: text(org) intent [approval], o: org, d: decision id, k: decision, a: agent, p: policy,
//	            t: action type, at: time of decision, ns: its nanoseconds below a millisecond, s: receipt, ...}
//	           and of a removed one {_id, g: decision id, l: [{c: chain, s: head, n: index, h: hash}],
//	           f: true where it was imported so}
//	forgotten  {_id: {o: org, d: first decision id}, at: when, t: [what is left of a removed record, without its _id]}
//	entries    {_id: text(org) text(kind) key, o: org, k: kind, at: UUIDv7, b: body, s: signature, kid}
//	heads      {_id: {c: chain, s: sequence}, h: head, w: holder, m: [{o: org, m: month, n: decisions}],
//	            d: [{o: org, d: decision ids, 16 bytes each}], in the order of the batch,
//	            n: counts, until they are counted}
//	            and of each chain {_id: {c: chain, s: -1}, w: who may add heads, p: the last sequence}
//	quotas     {_id: text(org) month, o: org, m: month, n: decisions, g: [{h: holder, n: places}],
//	            scarce: since when, at: last Count}
//	windows    {_id: text(org) text(counter) text(of), u: UUID, p: [{a: part, n: places}], until, last, at}
//	counts     {_id: {o: org, b: counted by, d: day, v: value, c: chain}, h: {hour: decisions}}
//
// A document of a global collection has no organization in its _id. The other fields of a record
// are in row.go. A settlement is the field st of its record. Each collection has a validator. Open
// returns an error if the validators or indexes of the database differ from its own. The indexes
// are
//
//	records  (o, d), (o, a, d) and (o, k, d), newest first; of removed ones (_id, g)
//	entries  (o, k, at)
//	quotas   (m, o) and g.h
//	windows  until, at which the server removes them
//
// # Appends
//
// A batch of decisions is one transaction of three requests. It inserts the records, adds the head that signs them
// and is committed. The _id of a record makes an intent unique, so the insert fails if an intent was decided
// before. Then a second transaction finds the decided intents, and inserts the records of the others with another
// head. A batch with entries is always found first, and so are a batch that may be stored already and the next
// batches after one with decided intents.
//
// The _id of a head keeps a chain from forking. Each chain has a row that names its writer and the sequence of its
// last head. The command that writes a head also changes this row, if it names the handle and the head before.
// If the outcome of a commit is unknown, the next transaction of the session resolves this: it aborts the earlier
// transaction or finds its result.
//
// Two requests would need the heads in the collection of the records, because before MongoDB 8.0 a command writes
// to one collection. A transaction that writes no head at all is at most 1.28 times as fast
// (bench/results/appends.txt), which another format does not pay for.
//
// # Imports
//
// An import inserts rows and tombstones in a transaction without a head. The receipts of these rows
// name chains that have no slot in this database, so no meter counts the rows. If an import is
// abandoned, its rows are found by these chains and deleted.
//
// # Meters
//
// A head lists its decisions by meter. A later transaction adds these decisions to n in quotas and
// records the last counted head. The number of decisions is n plus the decisions of all later
// heads. Places are rights to count one decision each. A handle gets them in advance, and g is
// their number. When a decision is counted, its place moves from g to n. So the sum of n and g is
// always the decisions plus the unused places. Count keeps this sum within the limit in one update.
//
// While g is less than an eighth of the free places, handles keep idle places for minutes. The Count that
// finds more sets scarce. All handles read this field every second, and give idle places back. A handle
// that then reaches the limit asks again for two seconds, because the others may not have read it yet.
//
// # Counts
//
// The numbers of records by decision, rule, code, agent and action type are counted in the same way. A head
// has the numbers of its batch until it is counted. Then they are added to those in the counter of its chain, whose
// form [hourSums.pack] describes. The oldest of these are moved to the rows of the chain when they are many or of an
// earlier day. Records that an import adds, or that retention or an abandoned import removes, are counted in the same
// transaction. A number is the sum over the rows and counters of all chains and over the heads that are not counted.
//
// # Windows
//
// A row of windows is the state of a rule's counter. One update moves the window to the server's
// current time, takes places back and grants others. Granted places end with the window, even if
// their handle was lost. So a row need not name handles. A row is not evidence. If it is missing,
// it is computed from the history.
//
// # Updates
//
// An update is one transaction. It writes the documents, their index, the counter of its organization
// and the row of changes, if there are changes. It raises the counter first. Another update of the organization
// conflicts with this. So the updates of an organization are serialized, and those of others do not wait. Documents
// without an organization have the counter of the organization "".
//
// Most of what an update costs the members is its commit. So updates of different organizations that come while
// others run share the next transaction. Their functions run at the same time, and one request reads what all of them
// wait for. A function that scans runs after the others, alone. If one of them fails before anything of it was sent,
// the others go on. If the transaction fails, each runs again in a transaction of its own, because one may be at
// fault or conflict with another handle. So it does if two write the same document. Urgent updates, which are kill
// switches, have groups of their own, which wait for no others.
//
// # Changes
//
// A handle tells its watchers all changes, also its own, in the order of one change stream. In it, the changes of an
// organization are in the order of its revisions. An update waits until its own row has come. Each event has a
// cluster time. The rows of one transaction have the same time, and a handle acknowledges it when it was told the last
// of them. After a stream has failed, the handle opens a new stream at the time of the last event. If the oplog
// does not have this time any more, it tells its watchers EverythingChanged.
//
// A slot has the time up to which its watchers were told. [Store.Barrier] waits until all slots have the time of the
// last own row. If an update has no row, it may have found a change that the own stream has not brought yet.
// Then Barrier writes a mark, and waits for the time of the mark, unless a later own row has come. What such an update
// has found may be what a restore has brought back. So a beat must have compared the database since.
//
// Signed changes are trimmed by their keys. A row may be committed late under a smaller key than the last signed one.
//
// # Restores
//
// A restore takes the database back while handles use it. Numbers alone do not tell: a counter may
// soon be greater than before. So each row of changes has a random id. A beat is written only if the slot has the
// beat that its handle wrote last. With it the handle reads the epoch of the counter of revisions, the row that
// it heard last, the counter of this row's organization and the end of its chain. If one of these is another, smaller
// or gone, the handle tells its watchers EverythingChanged, refuses every operation and is lost. The same follows if
// a revision comes again in the stream, or if an update gets a revision that a document already has. A batch is
// refused if the row of the chain has not the number of the head before it. A handle acknowledges the row that it
// heard with the time. [Store.Barrier] returns an error if the database does not have that row, because the handle
// may still allow until its next beat. Open makes no counter of revisions in a database that has data.
//
// # Schemas
//
// The database has the number of its schema, and the least schema that a writ must know to use it. Open and
// OpenSnapshot refuse a database that they would misread, and a handle that runs ends when the least schema
// becomes greater than its own. The leader migrates a database of an older schema: it writes the number and
// then changes validators and indexes. A handle of an older schema does not compare the collections of a newer
// one, and keeps working while its schema is not less than the least.
//
// # Replicas
//
// Each handle has a slot. Every 500 ms the handle renews the slot with a write, its beat. Handles whose clocks
// agree write their beats at the same time, which costs the members least. A slot
// lasts 2.5 s after a beat. When a handle reads its own beat in the change stream, it has
// read every change before this beat. The beats of others prove nothing, because a late stream has them too,
// and so the stream does not pass them. A handle that has not read a beat recently writes a beat before it
// reads documents. This write fails if the handle's primary was replaced.
//
// If no beat of a handle has succeeded for the timeout of an operation, the set has no majority.
// The handle then refuses each operation immediately.
//
// The holder of the first slot leads, but only after its own beats have succeeded for as long as a
// slot lasts. After this time the previous leader has stopped leading.
//
// A handle gives up another handle when it has seen no new beat of it for as long as a slot lasts, by its own
// clock: it takes the slot away, if the slot still has that beat. It does so only if its own beats have succeeded
// for as long, or as many as a slot lasts twice, with failures between them. It ends the open transactions of the
// lost handle, which could otherwise block others for a minute.
// The handles may have different MongoDB users, and then the server may refuse this. So it also closes the chain:
// the row of the chain names no writer any more. An open transaction of the lost handle has changed this row, or
// can no longer change it, and a later transaction finds the other name. Then it counts the heads of the lost
// handle and takes back its places. Until this is done the slot is not free, and Barrier waits. The next holder of
// the slot continues its chain. A handle that was given up notices this in its next transaction, and commits
// nothing from then on. The leader removes a slot that was free for a day. The counter of the chain's counted
// heads stays, so the chain is still found.
package mongodb
