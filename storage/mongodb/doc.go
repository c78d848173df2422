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
//	replicas   {_id: slot, chain, holder, until, beat, heard, sessions}
//
// The _id of a document of a global collection has no organization. Each collection
// has a validator of its fields, which is compared when the store is opened.
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
// A stream that is cut is therefore replaced by a new one and never resumed.
//
// # Replicas
//
// Each handle has a slot, which it renews with a beat every 500 ms and which expires
// after 2.5 s. Its own beat, come back through the stream, proves that it has missed
// nothing until the beat was written. A handle that reads without such proof first
// writes a beat, which a primary that was replaced unnoticed cannot. Who takes an
// expired slot goes on with its chain of heads. Transactions that a dead handle left
// open are ended by any other that finds its slot expired: the server alone would
// let them be in the way for a minute.
package mongodb
