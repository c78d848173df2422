package resource

import (
	"regexp"
	"strings"
)

// addWindows adds Win32's readings of path. Programs drop the trailing dots and spaces of a
// segment, and resolve .. before or after that. A block also looks at the path from which nothing
// is dropped, because some programs open that path.
func (t *text) addWindows(path string) {
	resolved := windowsPath(path, strings.Clone)
	t.add(Windows, letters(windowsPath(path, windowsSegment)))
	t.add(Windows, letters(windowsPath(resolved, windowsSegment)))
	t.blocks.add(Windows, letters(resolved))
	t.blocks.add(Windows, letters(windowsPath(path, windowsName)))
}

// windowsPath returns the path that Win32 opens, with slashes in place of backslashes. The
// prefixes \\?\, \\.\ and \??\ are dropped before a drive, and \\?\UNC\ becomes \\. A run of
// slashes is one slash. name returns the name for each segment. A .. cannot leave the drive or the
// share.
func windowsPath(path string, name func(segment string) string) string {
	path = slashed(path)
	if strings.HasPrefix(path, "//") || strings.HasPrefix(path, "/??") {
		path = device.ReplaceAllString(path, "$1$1$2")
	}
	root, path := windowsRoot(path)
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

// device matches a prefix that names a device namespace, before a share or a drive.
var device = regexp.MustCompile(`^(?://[?.]|/\?\?)/(?:(?i:unc)(/)|([A-Za-z]:))`)

// windowsRoot cuts off the part that .. cannot leave. That is a drive with its colon, or two
// slashes, a host and a share.
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

// windowsName returns Win32's name for a segment, as programs read it for which a segment of dots and
// spaces is a name.
func windowsName(segment string) string {
	name, _, _ := strings.Cut(segment, ":")
	if name = strings.TrimRight(name, ". "); name == "" {
		return segment
	}
	return name
}

// windowsSegment returns Win32's name for a segment. It drops trailing dots and spaces, and
// everything from the first colon on.
func windowsSegment(segment string) string {
	segment, _, _ = strings.Cut(segment, ":")
	if n := literalDots(strings.TrimRight(segment, " ")); n > 0 {
		return strings.Repeat(".", n)
	}
	return strings.TrimRight(segment, ". ")
}
