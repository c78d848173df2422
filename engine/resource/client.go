package resource

import "strings"

// clientPaths returns the paths that a client sends (RFC 3986, as curl, requests
// and Go do): literal dot segments are resolved first, and escapes stay for the
// server. Clients differ over a backslash in a web URL: it is sent as it is and
// as a slash.
func clientPaths(path string, web bool) []string {
	paths := []string{resolve(path, literalDots)}
	if web && strings.IndexByte(path, '\\') >= 0 {
		paths = append(paths, resolve(slashed(path), literalDots))
	}
	return paths
}
