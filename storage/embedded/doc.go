// Package embedded stores all data of a deployment in one directory. It is for a service that runs
// as a single process. The history is in a log of segments, with tables that lead to its items. A
// Pebble store has the documents.
//
// # History
//
// A commit is one frame of the log, with its signed head, records and entries. An import is a frame
// without a head. Package segment writes and reads the frames, and item.go defines their content.
// Package index finds items by a table beside each sealed segment, and by memory for the active one. view.go
// reads rows with it. Of the history, Pebble keeps meters, counts, removals and the leaves of removed rows. A
// segment is rewritten once half of its bytes are removed rows: see garbage.go.
//
// # Keys
//
// A key begins with one byte for the kind of the row. If the row has an organization, the length of
// its id follows in two bytes, big-endian, and then the id. The other parts of the key are:
//
//	00 "writ"                                    format        decimal text
//	00 "secret"                                  secret        32 bytes: see index.Tables
//	'C' revision(8) number(4)                    change        JSON of a storage.Change
//	'I'                                          kept          the last frame of which all of it is here: 8 bytes
//	'S' segment(8)                               garbage       see garbage.go
//	'D' kind(1) [org] id                         document      revision(8) [org] value
//	'K' kind(1) org index(1) key id              index entry   id
//	'T'                                          the revision up to which changes were trimmed: 8 bytes
//	'W' …                                        values that follow from the history: see journal.go
//	'c' org counted-by(1) day(4) value           counts of the hours: see counts.go
//	'i' org intent-key                           what is left of a removed row: see retention.go
//	'm' org month(4)                             meter         8 bytes
//	'r' org                                      removals      see view.go
//	'z' 'h' frame(8)                             the last kept frame: see streams.go
//	'z' 'c' number(8)                            the last other write
//
// Numbers are big-endian. The length comes before the id, so that no key of one organization is a
// prefix of the keys of another.
// [storage.Collections] defines the kinds, indexes, ids and keys of documents. A document of a
// global collection has its organization in the value instead of the key. The revision of a
// document is the number of the write that stored it.
//
// Open refuses a directory of an older or newer format: it returns an error and changes nothing in
// the directory.
//
// For example, the meter of organization "acme" in November 2026 has the key
//
//	6d 0004 61636d65 00031773
//
// # Faults
//
// The store refuses writes while less than [Options.MinFreeBytes] is free or while Pebble fails to
// write its tables. A refused write changes nothing on the disk. The store accepts writes again
// once the trouble is over. If the log itself cannot be written, the store stops, because memory
// may differ from the disk. Then every method returns an error until the directory is opened again.
// Both kinds of trouble are logged once, and [Store.Healthy] reports them.
//
// Healthy also reports a clock that stands far before the newest decision. The store still writes: see clock.go.
//
// # Damage
//
// Close writes a file "closed" that lists the other files. The next Open returns an error if a
// listed file is missing or has changed: see shutdown_manifest.go. A crash leaves no such file, and
// Pebble treats a truncated log or manifest as an effect of the crash. Therefore the store records
// its tip, the position of its last write, in a file beside its directory. It does so at least once
// a second and in Close: see tip.go. Open returns an error if the store ends before the recorded
// tip, or if a write between its first and its last is missing. It has changed nothing then.
// [Options.AcceptRollback] permits the loss. Only the loss of writes of the last second before the
// crash is not noticed. If Pebble lacks only counts of the history, Open makes them again from the
// segments: see reindex.go. So it does with tables. Other files have checksums, and unreadable data is an error.
//
// This detects accidents. An attacker who can write the directory can also write the recorded tip.
// Only a receipt or a head that is kept elsewhere detects such a change.
//
// # Asynchronous sync
//
// Every write is durable when its method returns. The exception are commits of decisions with
// [Options.WriteBehind]. Its documentation says what a crash loses.
package embedded
