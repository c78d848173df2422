package resource

import "strings"

// served returns what a server may make of each of the sent paths, in canonical
// form: each is decoded once and, where deep is set, twice and until no escape is
// left;
// %2F is a slash, and a backslash both a letter and a slash; where parameters is
// set, ;… of each segment is dropped or not; runs of slashes are one; dot segments
// are resolved again.
func served(sent []string, deep, parameters bool) []string {
	var paths []string
	add := func(path string) {
		path = letters(resolve(mergeSlashes(path), literalDots))
		for _, known := range paths {
			if known == path {
				return
			}
		}
		paths = append(paths, path)
	}
	for _, path := range sent {
		decoded := []string{decode(path)}
		if deep && hasEscape(decoded[0]) {
			decoded = append(decoded, decode(decoded[0]), decodeAll(decoded[0]))
		}
		for _, path := range decoded {
			for _, path := range bothSlashes(path) {
				add(path)
				if parameters {
					add(withoutParameters(path))
				}
			}
		}
	}
	return paths
}

// bothSlashes returns path with its backslashes as letters and as slashes.
func bothSlashes(path string) []string {
	if strings.IndexByte(path, '\\') < 0 {
		return []string{path}
	}
	return []string{path, slashed(path)}
}

// withoutParameters drops ;… of each segment, which servlets take for parameters:
// /a/..;x/b is /a/../b to them.
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
