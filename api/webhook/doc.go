// Package webhook tells organizations of events: approvals, disabled agents, registered
// policies, usage near its limit. It knows no HTTP server.
//
// A request follows Standard Webhooks (standardwebhooks.com): a POST with the headers
//
//	webhook-id:        msg_7d9b0f6c2a…                 the event's id, the same in every attempt
//	webhook-timestamp: 1795349000                      when it was sent, in Unix seconds
//	webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
//
// and the body {"type", "timestamp", "data"}. The signature is base64 of HMAC-SHA-256 over
// "id.timestamp.body", keyed with what base64 after "whsec_" in the secret decodes to. While
// a secret is rotated there are two signatures, separated by a space.
//
// An event is a fact that is committed. Its id is derived from the fact, so that it is sent
// at least once and always under one id. A delivery ends with a 2xx answer or dies a day
// after it became pending. [Deliverer] works on the handle that leads; what a handle did
// not finish the next leader does again.
package webhook
