// Package stream follows the history of organizations for viewers: readers that want each row soon
// after it was decided. It knows no HTTP. A [Hub] reads the new rows of all chains a few times a
// second, once for all viewers of an organization. A [Viewer] that resumes reads the rows that it has
// missed itself, and joins the hub afterwards.
//
// Each row that a viewer selects becomes an event exactly once, or counts in a [Skipped]:
//
//   - All rows that the viewer missed before it was opened become events.
//   - Of the later rows, at most [PerSecond] a second become events. The others are counted. If the
//     viewer does not take its events, a few of them wait, and the rows after these are counted.
//   - Rows that retention removed before they were read are counted. The viewer cannot select among
//     them, because they are gone.
//
// Events are in the order of each chain. Rows of several chains are not ordered among each other.
//
// # Places
//
// The id of an event is the [Place] after it, as base64url without padding of
//
//	place = version(1, is 1) *chain check(6)
//	chain = id(16) uvarint(heads) uvarint(leaves)    ordered by id
//
// heads and leaves are numbers. The viewer has had all leaves of that many heads of the chain, and that many
// leaves of the next head. check is the first 6 bytes of SHA-256(organization 00 version *chain). It finds
// mistakes, such as the id of another organization's stream. It protects nothing, because a place reveals no row.
package stream
