package resource

// browserPath returns the path that a browser sends (the WHATWG URL standard):
// %2e is a dot before segments are resolved and, in web and file URLs, a
// backslash is a slash.
func browserPath(path string, special bool) string {
	if special {
		path = slashed(path)
	}
	return resolve(path, encodedDots)
}
