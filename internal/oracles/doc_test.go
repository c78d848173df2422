// Package oracles compares writ's readings of resources with programs that act on resources.
// The programs are the WHATWG URL test data, node's new URL and url.parse, Python's urllib,
// posixpath and ntpath, urllib3, requests, libcurl, Go's net/url, net/mail and path, and the
// kernel. It compares writ's readings of addresses in metadata with nodemailer, Python's email and
// net/mail. The package has only tests.
//
// Tests compare verdicts. A test compiles a policy and evaluates an intent. The verdict on the
// resource is: allowed, blocked, not allowed or refused.
//
//   - spellings_test.go: no spelling that a program reads as blocked is allowed.
//   - webplatform_test.go: a resource that a browser reads as blocked is blocked.
//   - clients_test.go: wrong allows that happened once, each with a client that made the request.
//   - triples_test.go: the verdicts of package verdicts on whole policies.
//   - mail_test.go: no text that a mailer delivers elsewhere is within a rule about its addresses.
//   - ordinary_test.go: no ordinary identifier is refused.
//
// program_test.go runs the programs, and mutate_test.go makes the spellings.
package oracles
