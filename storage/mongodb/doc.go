// Package mongodb keeps everything of a deployment in a MongoDB database that many
// replicas of the service use at the same time. It needs a replica set of MongoDB
// 5.0 or later. Every write is with a majority and in its journals when its method
// returns, and every read is of what a majority has.
//
// # Collections
//
// Keys that must be in the order of bytes are strings in which each byte is the
// character of its number (latin-1): the server orders binary data by its length
// first. text(x) below is [storage.Text].
//
//	documents  {_id: kind text(org) id, o: org, r: revision, v: JSON}
//	index      {_id: kind text(org) index key id, d: _id of the document}
//	changes    {_id: revision, c: [{k: kind, o: org, i: id, l: alias, d: digest, a: actor}]}
//	counters   {_id: "revision", n: the last revision}
//	           {_id: "counted:" chain, n: the last head that the meters count}
//	replicas   {_id: slot, chain, holder, dead, until, beat, heard, sessions}
//	records    {_id: text(org) intent, o: org, d: decision id, k: decision, a: agent, p: policy,
//	            t: action type, at: time of decision, ns: its nanoseconds below a millisecond, s: receipt, ...}
//	           and of a removed one {_id, g: decision id, l: [{c: chain, s: head, n: index, h: hash}],
//	           f: true where it was imported so}
//	entries    {_id: text(org) text(kind) key, o: org, k: kind, at: UUIDv7, b: body, s: signature, kid}
//	heads      {_id: {c: chain, s: sequence}, h: head, w: holder, m: [{o: org, m: month, n: decisions}]}
//	quotas     {_id: text(org) month, o: org, m: month, n: decisions, g: [{h: holder, n: places}]}
//
// The _id of a document of a global collection has no organization. The other fields
// of a record are in row.go; a settlement is its field st. Records are indexed by
// (o, d), (o, a, d) and (o, k, d), newest first and without those that were removed;
// entries by (o, k, at); quotas by (m, o) and by g.h. Each collection has a validator
// of its fields. Validators and indexes are compared when the store is opened.
//
// # Appends
//
// A batch of decisions is one transaction: it sees that the handle still holds its
// slot, finds which intents stand, and inserts the records that are first with the
// head that signs them. The _id of a record makes an intent unique, that of a head
// keeps a chain from forking. After an unknown outcome the next transaction of the
// same session ends the one before or finds what it has stored.
//
// # Imports
//
// An import inserts rows, and what is left of removed ones, in a transaction without a
// head: their receipts name chains that no slot has. No meter counts them. By the same
// they are found where an import is abandoned, and deleted.
//
// # Meters
//
// A head says how many decisions of which meters it signs; some time after, heads are
// counted in quotas, in a transaction that also notes how far that has come. What was
// decided is n and what the heads after that say. A decision takes a place in g, and
// counting moves it to n: the sum of n and g is what was decided and what is held,
// however far counting has come, and Grant keeps it within the limit in one update.
//
// # Updates
//
// An update is one transaction of the documents, their index, the counter and the
// row of changes. It raises the counter first, so that all updates of the database
// are as if one ran after the other, and revisions have no gap.
//
// # Changes
//
// A handle tells its watchers of changes in the order of revisions: of its own when
// they are committed, of others' as they come through one change stream. What it
// finds missing it reads from changes; what was trimmed there is EverythingChanged.
// A stream that fails is replaced by a new one, before which what was missed is read:
// nothing depends on its being resumed, nor on how far back the oplog goes.
//
// # Replicas
//
// Each handle has a slot, which it renews with a beat every 500 ms and which expires
// after 2.5 s. Its own beat, come back through the stream, proves that it has missed
// nothing until the beat was written. A handle that reads without such proof first
// writes a beat, which a primary that was replaced unnoticed cannot.
//
// A handle of which no beat has come through for as long as an operation may take
// refuses at once what would wait as long: the set has no majority.
//
// The holder of the first slot leads, once its own beats have come through for the
// lease of a slot: who led before believes that no more by then.
//
// A handle whose slot has expired is given up by any other whose own beats have come
// through for as long, which then ends the transactions that it left open (the server
// alone would let them be in the way for a minute), counts its heads and takes back
// its places. Who takes the slot goes on with its chain. A handle that was given up
// finds that out within its next transaction and commits nothing any more.
package mongodb
