// Package scrub takes secrets out of text before it is stored or logged.
//
// What a secret looks like is not decided here: the rules are those of gitleaks
// (the formats of some two hundred providers, private keys, JWTs, and values
// assigned to a name such as api_key). Added are what gitleaks does not look
// for, because it searches source code: card numbers, e-mail addresses, user
// names with passwords in URLs and connection strings, values of parameters
// named like a credential, and the credentials in the URLs of well-known services
// (chat webhooks, bots, signed links).
//
// A secret is replaced by its kind, which is gitleaks' id of the rule or one of
// the Kind constants:
//
//	ci/ghp_9fK…            ci/[redacted:github-pat]
//	mail to ann@corp.test  mail to [redacted:email-address]
//	db;password=hunter2    db;password=[redacted:assigned-credential]
//
// # Identities
//
// What identifies somebody, such as an agent's id or a resource, must not become
// the same text as another's. A [Tagger] writes a tag in the place of the secret:
//
//	tag    = "[" kind ":" digits "]"
//	kind   = 1*( %x61-7A / DIGIT / "-" )   ; a-z 0-9 -
//	digits = 16( %x41-5A / %x32-37 )       ; base32 of RFC 4648, without padding
//
// The digits are the first 80 bits of the HMAC-SHA-256 of the secret, as it is
// written, under a key of the deployment. With the key of the bytes 0 to 31:
//
//	bot/ann@corp.test      bot/[email-address:AWYD7NCFU4LAQJTJ]
//
// So equal texts stay equal and different ones different, unless a text holds what
// has the form of a tag: see [Tagger.Tagged]. A key can be replaced: rows that
// were written under the old one are found by [Tagger.Spellings] as long as it is
// known.
//
// Text is read as it is written and with its escapes decoded, up to three times,
// so that %40, \u0040 and &#64; hide nothing, nor do full-width letters and
// characters that nobody sees. Scrubbing what is scrubbed changes nothing.
//
// # What is no secret
//
// Left alone are places in lists and numbers of words (page_token=, max_tokens=),
// values such as true, none and xxxx, accounts of services (git@, svn@, noreply@, a
// service account of Google's), names of packages and images with a version
// (npm:left-pad@1.3.0, app@sha256:…), files (logo@2x.png), patterns, and numbers that
// are fractions, telephone numbers or GTINs. A rule of a provider's format is never
// overruled by a name: page_token=ghp_… is a secret.
//
// A card number is 13 to 19 digits that begin as one of a network's, are as many as
// that network issues, and have the right check digit. One in forty random numbers of
// 16 digits is like that, and so is taken for one. So is name:word@word taken for a
// user with a password, and a hash of the right length beside a provider's name for
// that provider's token.
//
// # Encoded secrets
//
// Base64 and hexadecimal are decoded once, wherever they begin in the text:
//
//	base64 = 16*digit *( eol *digit ) *2"="   ; digits of either alphabet, RFC 4648
//	hex    = 24*hexdig *( eol *hexdig )
//	eol    = [ CR ] LF                        ; after a line of 60 digits or more
//
// What is decoded is text where twelve bytes or more of ASCII come in a row; that is
// read like any text, and its digits are the secret if it holds one:
//
//	k: Z2hwXzlmS3…          k: [redacted:github-pat]
//	Basic dXNlcjpwdw==      Basic [redacted:authorization-header]
//
// The user and password of a Basic header are found at any length.
//
// # Limits
//
// Not found are: what is encoded twice or compressed, base64 of UTF-16 or without 16
// letters and digits in a row (text that is full of > ? ~), base32 and other
// encodings; letters of another script that look like ASCII's, and its digits; a
// secret that is split over several fields, or whose name is in one and whose value
// is encoded in another; a secret of no known format that nothing names, such as the
// path of a webhook of a service that urlFormats lacks.
//
// # Speed
//
// Nearly all text is clean, and one pass over its bytes finds that out without
// allocating: an automaton of all keywords that the rules demand, with the
// lengths that they demand beside it. Only what a rule could match is given to
// that rule's expression. TestSuspect_HasNoFalseNegatives and FuzzSuspect hold
// the pass against the rules run one by one.
package scrub
