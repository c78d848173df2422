// Package decisionlog sends the rows of the history to a place outside: a sink. It is beside the store
// and below the service, so it knows neither HTTP nor decisions. Decisions never wait for it. The
// packages below are the sinks that need a client library.
//
// A [Follower] sends the rows of the chains that [storage.Log.Followed] names: the chain that its
// process writes, and, in the leader, the chains that no process writes. It reads what is committed
// and durable, so a row that is sent exists. It promises:
//
//   - Every row of a chain is sent at least once, in the order of the chain. The first appearances of
//     rows in a sink have this order, also if rows are sent again after a crash.
//   - What a sink has confirmed is stored as a position, at most once a second. A process that ends in
//     order stores the position as its last act. So only a crash or a failure of the sink makes rows
//     appear twice.
//   - A new sink gets the rows after its first start. From then on the store remembers it by its name,
//     also while it is not configured.
//   - While a sink fails, the rows wait in the history. At most [batchBytes] and one batch of the
//     history are in memory.
//
// Retention does not wait for a sink. What it removes before it was sent is counted. The settlement of
// a row is sent only if it was posted before the row was sent. Rows that were imported are not sent.
//
// # Lines
//
// A line is a JSON object and a newline. The object is what GET /v1/authorizations/{decisionId} of the
// API returns.
package decisionlog
