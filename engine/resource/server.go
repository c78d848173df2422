package resource

import "strings"

// addServed adds a server's readings of each of the sent paths. A server decodes a path once;
// outside web URLs also twice, and until no escape is left. %2F is a slash, and a backslash is
// a letter or a slash. A URL is read with and without ;… of each segment. Runs of slashes are
// one, and dot segments are resolved again.
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
