// Package oracles compares writ's readings of resources with the programs that act on
// resources: the WHATWG URL test data, node's new URL and url.parse, Python's urllib,
// posixpath and ntpath, urllib3, requests, libcurl, Go's net/url, net/mail and path, and the
// kernel. It has tests alone.
//
// Tests compare verdicts: a policy is compiled, an intent evaluated, and the resource is
// allowed, blocked, not allowed or refused.
//
//   - spellings_test.go: no spelling that a program reads as blocked is allowed.
//   - webplatform_test.go: what a browser reads as blocked is blocked.
//   - clients_test.go: wrong allows once seen, with the client that does them.
//   - triples_test.go: the verdicts of package verdicts on whole policies.
//   - ordinary_test.go: no ordinary identifier is refused.
//
// The programs run from program_test.go; mutate_test.go makes the spellings.
package oracles
