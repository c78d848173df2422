package resource

import (
	"regexp"
	"strings"
)

// addWindows adds Win32's readings of path: programs resolve .. before or after the trailing
// dots and spaces of a segment are dropped. A block also looks at the path with nothing
// dropped, as some programs open it.
func (t *text) addWindows(path string) {
	resolved := windowsPath(path, strings.Clone)
	t.add(Windows, letters(windowsPath(path, windowsSegment)))
	t.add(Windows, letters(windowsPath(resolved, windowsSegment)))
	t.blocks.add(Windows, letters(resolved))
}

// windowsPath returns the path that Win32 opens, with slashes. A backslash is a slash. The
// prefixes \\?\, \\.\ and \??\ are dropped before a drive, and \\?\UNC\ is \\. Runs of slashes
// are one. name returns each segment's name. A .. stays below drive and share.
func windowsPath(path string, name func(segment string) string) string {
	root, path := windowsRoot(device.ReplaceAllString(slashed(path), "$1$1$2"))
	segments := strings.Split(mergeSlashes(path), "/")
	for i, segment := range segments {
		segments[i] = name(segment)
	}
	path = strings.Join(segments, "/")
	if root == "" && !strings.HasPrefix(path, "/") {
		return resolve(path, literalDots)
	}
	return root + resolve("/"+strings.TrimPrefix(mergeSlashes(path), "/"), literalDots)
}

// device is a prefix that names a device namespace, before a share or a drive.
var device = regexp.MustCompile(`^(?://[?.]|/\?\?)/(?:(?i:unc)(/)|([A-Za-z]:))`)

// windowsRoot cuts off the part that .. cannot leave: a drive with its colon, or two slashes,
// a host and a share.
func windowsRoot(path string) (root, rest string) {
	if isDrive(path) || len(path) == 2 && isAlpha(path[0]) && path[1] == ':' {
		return path[:2], path[2:]
	}
	unc, ok := strings.CutPrefix(path, "//")
	if !ok {
		return "", path
	}
	switch parts := strings.SplitN(mergeSlashes(strings.TrimLeft(unc, "/")), "/", 3); {
	case len(parts) == 3:
		return "//" + parts[0] + "/" + parts[1], "/" + parts[2]
	case len(parts) == 2 && parts[1] != "":
		return "//" + parts[0], "/" + parts[1]
	default:
		return "/", "/" + parts[0]
	}
}

// windowsSegment returns Win32's name of a segment. It drops trailing dots and spaces, and
// everything from the first colon.
func windowsSegment(segment string) string {
	segment, _, _ = strings.Cut(segment, ":")
	if n := literalDots(strings.TrimRight(segment, " ")); n > 0 {
		return strings.Repeat(".", n)
	}
	return strings.TrimRight(segment, ". ")
}
