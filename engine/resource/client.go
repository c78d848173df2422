package resource

import "strings"

// clientPaths returns the paths that a client sends (RFC 3986, as curl, requests
// and Go do): literal dot segments are resolved first, and escapes stay for the
// server. Clients differ over runs of slashes, which are one or several segments
// for "..", and over a backslash in a web URL, which is sent as each of ways has it.
func clientPaths(ways []string) []string {
	path := ways[0]
	paths := []string{resolve(path, literalDots)}
	if strings.Contains(path, "//") && hasDots(path, encodedDots) {
		paths = append(paths, resolve(mergeSlashes(path), literalDots))
	}
	for _, way := range ways[1:] {
		paths = append(paths, resolve(way, literalDots))
	}
	return paths
}
