package resource

import "strings"

// served returns what a server may make of each of the sent paths, in canonical
// form: each is decoded once and, where deep is set, until no escape is left;
// %2F is a slash, and a backslash both a letter and a slash; ;… after a dot
// segment is dropped or not; runs of slashes are one; dot segments are resolved
// again.
func served(sent []string, deep bool) []string {
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
			decoded = append(decoded, decodeAll(decoded[0]))
		}
		for _, path := range decoded {
			for _, path := range bothSlashes(path) {
				add(path)
				if strings.Contains(path, ".;") {
					add(withoutDotParameters(path))
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

// withoutDotParameters drops the parameters of dot segments: /a/..;x/b is
// /a/../b to servers that take ;x for a parameter of the segment.
func withoutDotParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if name, _, ok := strings.Cut(segment, ";"); ok && literalDots(name) > 0 {
			segments[i] = name
		}
	}
	return strings.Join(segments, "/")
}
