// Package api is writ's HTTP surface: it turns bytes into intents and results
// into bytes, and decides nothing itself.
//
// [New] returns a [Server] over a decision.Service. routes.go lists every route with the scope that it demands. One
// wrapper (handle.go) does what is common to all routes: authentication, scope, media type, limits, metrics, panics and
// the problem document of a failure. A handler sets its answer on the request, or returns an error.
//
// Only this package imports Fiber. Nothing outside the wrapper refers to Fiber's request memory: bodies are decoded
// into memory of their own, and every other string is cloned. Package wire has the connections below. Package limit
// bounds what one caller takes. Package operator verifies the tokens of operators.
//
// Errors are RFC 9457 problems. Only problem.go chooses a status. An error never allows anything: a body with
// "approved":true is written only from a record that the ledger committed.
package api
