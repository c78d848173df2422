// Package decisionlog sends the rows of the history to a place outside: a sink. It is beside the store
// and below the service, so it knows neither HTTP nor decisions. Decisions never wait for it. The
// packages in its directory are the sinks that need a client library.
//
// A [Follower] sends the rows of the chains that [storage.Log.Followed] names: the chain that its
// process writes, and, in the leader, the chains that no process writes. It reads only rows that are
// committed and durable. It promises:
//
//   - Every row of a chain is sent at least once, in the order of the chain. The first appearances of
//     rows in a sink have this order, also if rows are sent again after a crash.
//   - The store has a position for each chain: how far the sink has confirmed its rows. The position is
//     stored at most once a second, and when the process ends in order. So only a crash or a failure of
//     the sink makes rows appear twice.
//   - A new sink gets the rows that are decided after its first start. From then on the store remembers
//     the sink by its name, also while it is not configured.
//   - While a sink fails, the rows wait in the history. At most [batchBytes] and one batch of the
//     history are in memory.
//
// Retention does not wait for a sink. Rows that it removes before they were sent are counted. The
// settlement of a row is sent only if it was posted before the row was sent. Imported rows are not sent.
//
// # Lines
//
// A line is a JSON object and a newline. The object is what GET /v1/authorizations/{decisionId} of the
// API returns.
package decisionlog
