package resource

import "strings"

// literalPaths returns the paths that an object store looks up: those of the
// client with the dot segments left, because a key may hold them.
func literalPaths(path string, web bool) []string {
	if web && strings.IndexByte(path, '\\') >= 0 {
		return []string{path, slashed(path)}
	}
	return []string{path}
}
