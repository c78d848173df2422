// Package embedded stores all data of a deployment in one directory: the backend for a
// service that runs as a single process. The history is in a log of segments, documents
// are in a Pebble store, and so are the keys by which the history is found.
//
// # History
//
// A commit is one frame of the log, with its signed head, records and entries. An import is a
// frame without a head. Package segment has the frames, item.go what is in them. Package
// index finds it again: the keys of the last frames are in memory and move to Pebble
// together. Opening the directory reads the frames whose keys are not in Pebble. A segment
// that is half removed rows is rewritten (garbage.go).
//
// # Keys
//
// A key is one byte for the kind of the row, then the organization if the row has one
// (two bytes of length, big-endian, then the id), then the rest:
//
//	00 "writ"                                    format        decimal text
//	'C' revision(8) number(4)                    change        JSON of a storage.Change
//	'I'                                          indexed       the last frame whose keys are here: 8 bytes
//	'S' segment(8)                               garbage       see garbage.go
//	'D' kind(1) [org] id                         document      revision(8) [org] value
//	'K' kind(1) org index(1) key id              index entry   id
//	'T'                                          the revision up to which changes were trimmed: 8 bytes
//	'd' org decision(1) decision-id(16)          decisions by outcome
//	'h' org decision-id(16)                      history row   where it is: see item.go
//	'h' org decision-id(16) 's'                  its settlement, in the same way
//	'i' org intent-id                            decision-id(16), and the leaves of a removed row: see retention.go
//	'k' seq(8)                                   head          where it is
//	'l' org entry-kind(1) seq(8) index(4)        entry         where it is
//	'm' org month(4)                             meter         8 bytes
//	'n' org entry-kind(1) key                    seq(8) index(4) of an entry
//	'z' 'h' frame(8)                             the last indexed frame: see streams.go
//	'z' 'c' number(8)                            the last other write
//
// Numbers are big-endian. The organization's length comes before its id so that no
// id, whatever its bytes, begins the range of another. Decision ids are UUIDv7:
// their order is the order of time. Kinds, indexes, ids and keys of documents are
// defined by [storage.Collections]. The document of a global collection has its
// organization in the row. A revision is the number of the write.
//
// A directory of another format, older or newer, is refused, and nothing in it changes.
//
// For example, the meter of organization "acme" in November 2026 has the key
//
//	6d 0004 61636d65 00031773
//
// # Faults
//
// The store refuses writes, without writing anything, while less than
// [Options.MinFreeBytes] is free or while Pebble fails to write its tables. It accepts
// them again afterwards. If the log itself can't be written, memory may differ from the
// disk and the store stops: every method returns an error until the directory is opened
// again. Either trouble is logged once, and [Store.Healthy] reports it.
//
// # Damage
//
// Close writes a file "closed" that lists the other files, and the next opening
// refuses a directory in which one of them is missing or has changed: see
// shutdown_manifest.go. A crash leaves no such file, and Pebble treats a truncated log or
// manifest as an effect of the crash. Therefore the tip of the store is recorded beside
// its directory, at least once a second and by Close: see tip.go. A store that ends
// before the recorded tip, or lacks a write between its first and its last, is refused
// before anything in it changes, unless [Options.AcceptRollback] says otherwise. Only the
// loss of the last writes within a second of the crash is not noticed. Where only keys of
// the history are missing from Pebble, they are written again from the segments: see
// reindex.go. Other files have checksums, and unreadable data is an error.
//
// This detects accidents. An attacker who can write the directory can also write the
// recorded tip. Only a receipt or a head kept elsewhere detects that.
//
// # Asynchronous sync
//
// Every write is durable when its method returns, except commits of decisions with
// [Options.WriteBehind], which says what a crash loses.
package embedded
