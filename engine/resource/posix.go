package resource

import "strings"

// posixPath returns the path that a POSIX kernel opens (POSIX.1-2017, 4.13). % \ ? # are letters.
// A run of slashes is one slash, but exactly two slashes at the start stay. Dot segments are
// resolved.
func posixPath(path string) string {
	root := ""
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		root = "/"
	}
	return root + resolve(mergeSlashes(path), literalDots)
}
