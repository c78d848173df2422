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
// A [List] matches resources. Each reader (see package resource) reads the resource and the
// patterns in its own way. A reader sees wildcards as letters. A reading of the resource is
// compared with the same reader's readings of the pattern. So https://EXAMPLE.com:443/%7Ea/*
// matches https://example.com/~a/b. Brackets right after // hold an address. In patterns such as
// C:\Users\** a backslash is an ordinary character. These patterns start with a drive or two
// backslashes, or have a backslash before a letter or digit.
//
// The whole text of a pattern also counts as a pattern without wildcards. So each pattern matches
// its own text, as for private[0] and /v1/users/{id}.
//
// Strings that are not resources are matched as written: see [CompileSet]. In action types only *
// is a wildcard: see [Actions].
package glob
