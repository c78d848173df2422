// Package console serves the pages on which people look at what their agents did and stop them.
//
// The pages are rendered on the server and work before any script has run. All they show and do are
// endpoints of openapi.yaml: the package has no other source than an [API], which it asks with the
// credential of the person who signed in. Scopes, limits and the audit therefore hold as for any other
// caller.
//
// # Signing in
//
// The credential is kept in one cookie, sealed with a key that only servers have. The API never reads
// the cookie. No GET changes anything. A POST is refused unless the browser says that a form of the
// console sent it.
//
// # Paths
//
// Each entry of the navigation has its page below /console. A document has its own page below the list:
// /console/decisions/{id}. /console/decisions/stream has the events of
// GET /v1/authorizations/stream.
package console

import (
	"context"
	"io"
	"net/http"
)

// API answers requests of writ's HTTP interface.
type API interface {
	// Do sends a request for c. path may have a query. body is JSON, or nil. The caller closes the
	// answer's body. An answer of any status is no error.
	Do(ctx context.Context, c Caller, method, path string, body []byte) (*Answer, error)
}

// Caller is the person for whom a request is sent.
type Caller struct {
	Credential string        // an operator token or API key
	From       *http.Request // the browser's request, whose address is counted
}

// Answer is the answer to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   io.ReadCloser
}

// Passer is a [http.ResponseWriter] that sends a stream after the handler has returned. Without it the
// handler copies the stream.
type Passer interface {
	// Pass makes body the body of the response and closes it when it was sent.
	Pass(body io.ReadCloser)
}
