// Package api is writ's HTTP surface: it turns bytes into intents and results
// into bytes, and decides nothing itself.
//
// [New] wires a [Server] over the packages that do the work; routes.go lists
// every route with the scope it demands. One wrapper (handle.go) does for all
// of them what is not a handler's business: authentication, scope, media type,
// limits, metrics, panics and the problem document of whatever failed. Only
// this package imports Fiber, and nothing of Fiber's request memory leaves the
// wrapper: bodies are decoded into memory of their own, every other string is
// cloned.
//
// Errors are RFC 9457 problems (problem.go is the one place that chooses a
// status). An error never allows anything: a body with "approved":true is
// written only from a record that the ledger committed.
package api
