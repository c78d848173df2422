// Package scrub takes secrets out of text before it is stored or logged.
//
// It uses the rules of gitleaks. They find the formats of about two hundred providers,
// private keys, JWTs, and values that are assigned to a name such as api_key. Gitleaks
// searches source code, so this package adds rules for
//
//   - card numbers and e-mail addresses;
//   - user names with passwords in URLs and connection strings;
//   - values of parameters named like a credential, and sentences such as "the password
//     is hunter2";
//   - credentials in the URLs of well-known services (chat webhooks, bots, signed links).
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
// Two identities, such as agent ids or resources, must stay different texts. A [Tagger]
// replaces a secret in an identity by a tag:
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
// Equal texts stay equal and different texts stay different, unless a text already
// contains a tag: see [Tagger.Tagged]. The key can be rotated: [Tagger.Spellings] finds
// rows that were written under an old key as long as the Tagger has that key.
//
// Text is read as it is written and with its escapes decoded, up to three times. This
// finds secrets behind %40, \u0040 and &#64;, full-width letters and invisible
// characters. Scrubbing is idempotent.
//
// # What is no secret
//
// These stay:
//
//   - page tokens and token counts: page_token=, max_tokens=;
//   - values such as true, none and xxxx;
//   - service accounts: git@, svn@, noreply@, Google's service accounts;
//   - package and image names with a version: npm:left-pad@1.3.0, app@sha256:…;
//   - file names such as logo@2x.png, and patterns;
//   - numbers that are fractions, telephone numbers or GTINs.
//
// A provider's format outranks a name: page_token=ghp_… is a secret.
//
// A card number is 13 to 19 digits with a network's prefix, a length that the network
// issues, and the right check digit. One in forty random numbers of 16 digits passes
// this test and is replaced. The text name:word@word is replaced like a user with a
// password, and a hash beside a provider's name is replaced if it is as long as that
// provider's tokens.
//
// # Encoded secrets
//
// Base64 and hexadecimal are decoded once, wherever they begin in the text:
//
//	base64 = 16*digit *( eol *digit ) *2"="   ; digits of either alphabet, RFC 4648
//	hex    = 24*hexdig *( eol *hexdig )
//	eol    = [ CR ] LF                        ; after a line of 60 digits or more
//
// A run of at least twelve decoded ASCII bytes is read like any text. If it holds a
// secret, its digits are replaced:
//
//	k: Z2hwXzlmS3…          k: [redacted:github-pat]
//	Basic dXNlcjpwdw==      Basic [redacted:authorization-header]
//
// The user and password of a Basic header are found at any length.
//
// # Limits
//
// The package does not find:
//   - text that is encoded twice or compressed;
//   - base64 of UTF-16, or without 16 letters and digits in a row (text that is full of
//     > ? ~), base32 and other encodings;
//   - letters and digits of another script that look like ASCII's;
//   - a secret that is split over several fields, or whose name is in one field and
//     whose encoded value is in another;
//   - a secret of unknown format without a name, such as the path of a webhook of a
//     service that urlFormats lacks.
//
// # Speed
//
// Nearly all text is clean. One pass over its bytes proves that a text is clean, without
// allocating. An automaton looks for the keywords of all rules and measures the lengths
// that the rules require. A rule's expression runs only on text that it could match.
// TestSuspect_HasNoFalseNegatives and FuzzSuspect compare the result of the pass with
// running all rules one by one.
package scrub
