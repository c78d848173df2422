// Package mongodb stores all data of a deployment in a MongoDB database that many
// replicas of the service use at the same time. It needs a replica set of MongoDB
// 5.0 or later. A method returns when a majority has its writes in their journals, and
// reads return only data that a majority has.
//
// # Collections
//
// Keys that must be in the order of bytes are strings with one character for each byte
// (latin-1), because the server orders binary data by its length first. text(x) below is
// [storage.Text].
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
//	windows    {_id: text(org) text(counter) text(of), u: UUID, p: [{a: part, n: places}], until, last, at}
//
// The _id of a document of a global collection has no organization. The other fields of a record
// are in row.go. A settlement is the field st of its record. Each collection has a validator of
// its fields. Open compares validators and indexes. The indexes are
//
//	records  (o, d), (o, a, d) and (o, k, d), newest first; of removed ones (_id, g)
//	entries  (o, k, at)
//	quotas   (m, o) and g.h
//	windows  until, at which the server removes them
//
// # Appends
//
// A batch of decisions is one transaction. It checks that the handle still holds its
// slot, finds the intents that were decided before, and inserts the first records with
// the head that signs them. The _id of a record makes an intent unique. The _id of a head
// keeps a chain from forking. After an unknown outcome the next transaction of the same
// session aborts the previous one or finds its result.
//
// # Imports
//
// An import inserts rows and tombstones in a transaction without a head. Their receipts name
// chains without a slot, so no meter counts them. An abandoned import is found by these chains
// and deleted.
//
// # Meters
//
// A head lists its decisions by meter. Later a transaction counts heads in quotas and
// records the last head that it counted. The number of decisions is n plus the decisions
// of all later heads. A decision takes a place in g, and counting moves that place to n.
// The sum of n and g is always the number of decisions and held places, and Count keeps
// it within the limit in one update.
//
// # Windows
//
// A row of windows is the state of a rule's counter. One update moves it on by the server's
// clock, gives back places and grants others. Granted places leave the row with the window, even
// if their handle was lost, so a row names no handles. Rows prove nothing: a missing one is made
// from the history.
//
// # Updates
//
// An update is one transaction of the documents, their index, the counter and the
// row of changes. It raises the counter first. This serializes all updates of the
// database and leaves no gap between revisions.
//
// # Changes
//
// A handle tells its watchers of changes in the order of revisions: its own after their
// commit, others' as they arrive in one change stream. It reads missing revisions from
// the collection changes. If they were trimmed, it tells EverythingChanged. A new stream
// replaces a failed one, and the handle reads the changes in between. It never resumes a
// stream, so the length of the oplog does not matter.
//
// # Replicas
//
// Each handle has a slot, which it renews with a beat every 500 ms and which expires
// after 2.5 s. When its own beat comes back through the stream, the handle has seen every
// earlier change. Without such proof a handle writes a beat before it reads. That fails if
// its primary has been replaced.
//
// If no beat of a handle has succeeded for the timeout of an operation, the set has no
// majority. The handle then refuses operations at once.
//
// The holder of the first slot leads after its own beats have succeeded for the lease of
// a slot. By then the previous leader no longer believes that it leads.
//
// A handle gives up others whose slots have expired, if its own beats have succeeded for
// a lease. It ends the transactions that the lost handle left open (the server would let
// them block others for a minute), counts its heads and takes back its places. The next
// holder of the slot continues its chain. A handle that was given up learns of it in its
// next transaction and commits nothing after that.
package mongodb
