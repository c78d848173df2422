// Package index finds items of the history. Each sealed segment has a table beside it: entries,
// sorted by name, that lead to the items of the segment. The entries of the active segment are in
// memory, in the same order. A [Cursor] merges them.
//
// # Promises
//
// A [Cursor] yields each entry that was added before its first call of Seek, and each entry of a
// frame that was in the log before [Tables.Load]. Others can have the same [Name], so the caller
// compares the items. An item may have been removed since, so that its place has what is left of it.
//
// A table follows from its segment and a secret alone. It is written after the segment is sealed.
// Until then the segment's entries stay in memory. If a table is lost, damaged or of an older content
// of the segment, it is made again. If the segment cannot be read either, there is an error.
//
// A cursor goes from segment to segment and reads blocks of 4 KiB. It skips a segment if its place is not
// between the least and the greatest entry there, or if the filter says that the segment has no entry of
// the list. docs/history-tables.md has the bound that follows, and TestTables_Reads holds it.
package index
