package resource

// browserPath returns the path that a browser sends (the WHATWG URL standard). Before segments are
// resolved, %2e becomes a dot. If special is set, as for web and file URLs, a backslash becomes a
// slash.
func browserPath(path string, special bool) string {
	if special {
		path = slashed(path)
	}
	return resolve(path, encodedDots)
}
