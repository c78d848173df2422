// Package glob matches patterns in the dialect of OPA's glob.match with the
// delimiter "/":
//
//	**       any characters, slashes too
//	*        any characters within one segment
//	?        one character but a slash
//	[a-z]    one character of a range; [abc] of a set; [!…] not of it, which
//	         includes the slash
//	{a,b}    either pattern
//	\c       the character c, which must not be a letter or digit
//
// A [List] matches resources. The readers of resources (package resource) also read its
// patterns, in which letters stand for the wildcards. A reading of the resource is compared
// with the same reader's readings of the pattern: so https://EXAMPLE.com:443/%7Ea/* matches
// https://example.com/~a/b. Brackets right after // hold an address. With a drive or two
// backslashes at the start of a pattern, or a backslash before a letter or digit, every
// backslash of it is a letter, as in C:\Users\**.
//
// The whole text of a pattern is a pattern without wildcards, too. So it always matches the
// text that it quotes: private[0], /v1/users/{id}.
//
// Strings that are not resources are matched as written: see [CompileSet]. Action types have *
// alone: see [Actions].
package glob
