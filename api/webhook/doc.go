// Package webhook tells organizations of events: approvals, disabled agents, registered policies, and usage near its
// limit. It does not depend on an HTTP server.
//
// A request follows Standard Webhooks (standardwebhooks.com): a POST with the headers
//
//	webhook-id:        msg_7d9b0f6c2a…                 the event's id, the same in every attempt
//	webhook-timestamp: 1795349000                      when it was sent, in Unix seconds
//	webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
//
// and the body {"type", "timestamp", "data"}. The signature is the base64 of an HMAC-SHA-256 over "id.timestamp.body".
// The key is the base64 text after "whsec_" in the secret, decoded. While a secret is rotated there are two signatures,
// separated by a space.
//
// An event reports a committed fact, and its id is derived from the fact. So an event is sent at
// least once, and always with the same id. A delivery ends with a 2xx answer, or dies a day after
// it became pending. Only the leader of the store's replicas delivers. If a leader stops before
// it has finished, the next leader repeats the unfinished work.
package webhook
