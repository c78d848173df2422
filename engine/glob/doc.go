// Package glob matches patterns in the dialect of OPA's glob.match with the
// delimiter "/":
//
//	**       any characters, slashes too
//	*        any characters within one segment
//	?        one character but a slash
//	[a-z]    one character of a range; [abc] one of a set; [!…] one outside
//	         the set, which may be the slash
//	{a,b}    either pattern
//	\c       the character c, which must not be a letter or digit
//
// A [List] matches resources. The readers of resources (package resource) also read its patterns.
// While they do, letters stand for the wildcards. A reading of the resource is compared with the
// same reader's readings of the pattern. So https://EXAMPLE.com:443/%7Ea/* matches
// https://example.com/~a/b. Brackets right after // hold an address. In some patterns every
// backslash is a letter, as in C:\Users\**. These start with a drive or two backslashes, or have a
// backslash before a letter or digit.
//
// The whole text of a pattern is also a pattern without wildcards. So a pattern always matches the
// text that it quotes: private[0], /v1/users/{id}.
//
// Strings that are not resources are matched as written: see [CompileSet]. In action types only *
// is a wildcard: see [Actions].
package glob
