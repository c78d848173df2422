// Package stream follows the history of organizations for viewers: readers that want each row soon
// after it was decided. It knows no HTTP. A [Hub] reads the new rows of all chains a few times a
// second, once for all viewers of an organization. A [Viewer] that resumes reads what it has missed
// itself, and joins the hub afterwards.
//
// Each row that a viewer selects becomes an event exactly once, or counts in a [Skipped]:
//
//   - What the viewer has missed before it was opened becomes events, however much it is.
//   - Of the rows after that, [PerSecond] a second become events. The others are counted. A viewer
//     that does not take its events keeps a few of them, and the rows beyond are counted.
//   - What retention has removed before it was read is counted. The rows are gone, so the viewer
//     cannot select among them.
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
// A viewer has had all leaves of a chain's first heads, and the first leaves of the head after these. check begins
// SHA-256(organization 00 version *chain). It finds mistakes, such as the id of another organization's
// stream. It is no protection: a place reveals no row.
package stream
