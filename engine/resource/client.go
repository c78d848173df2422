package resource

import "strings"

// clientPaths returns the paths that a client sends (RFC 3986, as curl, requests and Go do).
// Literal dot segments are resolved first, and escapes stay for the server. Clients differ over
// runs of slashes: for ".." a run is one segment or several. They also differ over a backslash in
// a web URL: each of ways is the path as some client sends it.
func clientPaths(ways []string) []string {
	paths := make([]string, 0, 2*len(ways))
	for _, way := range ways {
		paths = append(paths, resolve(way, literalDots))
		if strings.Contains(way, "//") && hasDots(way, encodedDots) {
			paths = append(paths, resolve(mergeSlashes(way), literalDots))
		}
	}
	return paths
}

// escapedPaths returns the paths that requests and urllib3 send for a web URL: where a % begins no
// escape, they send every % as %25.
func escapedPaths(ways []string) (paths []string) {
	for _, way := range ways {
		if hasBarePercent(way) {
			paths = append(paths, resolve(strings.ReplaceAll(way, "%", "%25"), literalDots))
		}
	}
	return paths
}

// hasBarePercent reports whether a % of path begins no escape.
func hasBarePercent(path string) bool {
	for i := range len(path) {
		if _, ok := escapeAt(path, i); path[i] == '%' && !ok {
			return true
		}
	}
	return false
}
