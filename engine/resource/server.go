package resource

import "strings"

// addServed adds a server's readings of each sent path. Each path is decoded once. A path that
// is not of a web URL is also decoded twice, and decoded until no escape is left. %2F becomes a
// slash. One reading takes a backslash as a letter, another as a slash. The path of a web or
// service URL is also read without the ;… of each segment. Each reading merges runs of slashes
// and then resolves dot segments.
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

// bothSlashes returns path with its backslashes as letters and as slashes.
func bothSlashes(path string) []string {
	if strings.IndexByte(path, '\\') < 0 {
		return []string{path}
	}
	return []string{path, slashed(path)}
}

// withoutParameters drops ;… of each segment, which servlets take for parameters: to them
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
