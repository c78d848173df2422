// Package api is writ's HTTP interface. It decodes requests into intents and encodes results. The
// decisions are made by the service behind it.
//
// [New] returns a [Server] for a decision.Service. routes.go lists every route with the scope that
// it demands. One wrapper (handle.go) does the work that all routes share: authentication, scope,
// media type, limits, metrics, panics and problem documents. A handler sets its answer on the
// request, or returns an error.
//
// Only this package imports Fiber. Fiber reuses the memory of a request, so nothing outside the
// wrapper refers to it: bodies are decoded into memory of their own, and every other string is
// cloned. Package wire handles the connections. Package limit bounds the resources of one caller.
// Package operator verifies the tokens of operators.
//
// Errors are RFC 9457 problems. Only problem.go chooses a status. An error never allows an action:
// "approved":true is written only from a record that the ledger committed.
package api
