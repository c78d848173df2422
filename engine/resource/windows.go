package resource

import "strings"

// addWindows adds what Win32 makes of path: programs resolve .. before the trailing
// dots and spaces of a segment are dropped or afterwards.
func (t *text) addWindows(path string) {
	resolved := windowsResolved(path)
	t.add(Windows, letters(windowsPath(path)))
	t.add(Windows, letters(windowsPath(resolved)))
	t.blocks = append(t.blocks, Reading{letters(resolved), Windows}) // some drop nothing
}

// windowsResolved returns path with its dot segments resolved before anything is
// dropped.
func windowsResolved(path string) string {
	root, path := windowsRoot(withoutDevice(slashed(path)))
	if root == "" && !strings.HasPrefix(path, "/") {
		return resolve(mergeSlashes(path), literalDots)
	}
	return root + resolve("/"+strings.TrimPrefix(mergeSlashes(path), "/"), literalDots)
}

// windowsPath returns the path that Win32 opens, with slashes: a backslash is a
// slash; the prefixes \\?\, \\.\ and \??\ are dropped before a drive, and
// \\?\UNC\ is \\; runs of slashes are one; .. stays below drive and share; the
// trailing dots and spaces of a segment and everything from its first colon are
// dropped.
func windowsPath(path string) string {
	root, path := windowsRoot(withoutDevice(slashed(path)))
	segments := strings.Split(mergeSlashes(path), "/")
	for i, segment := range segments {
		segments[i] = windowsSegment(segment)
	}
	path = strings.Join(segments, "/")
	if root == "" && !strings.HasPrefix(path, "/") {
		return resolve(path, literalDots)
	}
	return root + resolve("/"+strings.TrimPrefix(mergeSlashes(path), "/"), literalDots)
}

// withoutDevice drops the prefixes that name a device namespace.
func withoutDevice(path string) string {
	for _, prefix := range [...]string{"//?/", "//./", "/??/"} {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if unc, ok := cutFold(rest, "unc/"); ok {
			return "//" + unc
		}
		if len(rest) >= 2 && isAlpha(rest[0]) && rest[1] == ':' {
			return rest
		}
	}
	return path
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// windowsRoot cuts off what .. cannot leave: a drive with its colon, or two
// slashes, a host and a share.
func windowsRoot(path string) (root, rest string) {
	if isDrive(path) || len(path) == 2 && isAlpha(path[0]) && path[1] == ':' {
		return path[:2], path[2:]
	}
	unc, ok := strings.CutPrefix(path, "//")
	if !ok {
		return "", path
	}
	host, rest, _ := strings.Cut(strings.TrimLeft(unc, "/"), "/")
	share, rest, more := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	switch {
	case more:
		return "//" + host + "/" + share, "/" + rest
	case share != "":
		return "//" + host, "/" + share
	}
	return "/", "/" + host
}

// windowsSegment returns the name that Win32 makes of a segment.
func windowsSegment(segment string) string {
	segment, _, _ = strings.Cut(segment, ":")
	if n := literalDots(strings.TrimRight(segment, " ")); n > 0 {
		return strings.Repeat(".", n)
	}
	return strings.TrimRight(segment, ". ")
}
