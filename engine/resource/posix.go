package resource

import "strings"

// posixPath returns the path that a POSIX kernel opens (POSIX.1-2017, 4.13): % \
// ? # are letters, runs of slashes are one except exactly two leading ones, and
// dot segments are resolved.
func posixPath(path string) string {
	root := ""
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		root = "/"
	}
	return root + resolve(mergeSlashes(path), literalDots)
}
