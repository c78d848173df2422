package resource

import "strings"

// clientPaths returns the paths that a client sends (RFC 3986, as curl, requests
// and Go do): literal dot segments are resolved first, and escapes stay for the
// server. Clients differ over a backslash in a web URL, which is sent as it is and
// as a slash, and over runs of slashes, which are one or several segments for "..".
func clientPaths(path string, web bool) []string {
	paths := []string{resolve(path, literalDots)}
	if strings.Contains(path, "//") && hasDots(path, encodedDots) {
		paths = append(paths, resolve(mergeSlashes(path), literalDots))
	}
	if web && strings.IndexByte(path, '\\') >= 0 {
		paths = append(paths, resolve(slashed(path), literalDots))
	}
	return paths
}
