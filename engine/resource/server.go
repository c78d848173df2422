package resource

import "strings"

// addServed adds a server's readings of each path that a client sends. A path is decoded once. A
// path that is not from a web URL is also decoded twice, and decoded until no escape is left. A
// decoded %2F is a slash. If the path has a backslash, one reading takes it as a letter and
// another as a slash. The path of a web or service URL is also read without the ;… of each
// segment. Each reading merges runs of slashes and then resolves dot segments.
func (t *text) addServed(base, query string, sent ...string) {
	for _, path := range sent {
		decoded := []string{Decode(path)}
		if t.form != formWeb && hasEscape(decoded[0]) {
			decoded = append(decoded, Decode(decoded[0]), decodeAll(decoded[0]))
		}
		for _, path := range decoded {
			for _, path := range bothSlashes(path) {
				t.add(Server, base+letters(resolve(mergeSlashes(path), literalDots))+query)
				if t.form == formWeb || t.form == formService {
					t.add(Server, base+letters(resolve(mergeSlashes(withoutParameters(path)), literalDots))+query)
				}
			}
		}
	}
}

// bothSlashes returns path twice: with its backslashes as letters, and with slashes in their
// place.
func bothSlashes(path string) []string {
	if strings.IndexByte(path, '\\') < 0 {
		return []string{path}
	}
	return []string{path, slashed(path)}
}

// withoutParameters drops the ;… of each segment. Servlets read it as parameters: for them
// /a/..;x/b is /a/../b.
func withoutParameters(path string) string {
	if strings.IndexByte(path, ';') < 0 {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}
