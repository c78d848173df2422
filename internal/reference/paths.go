package reference

import (
	"slices"
	"strings"
)

// dots counts the dots of a dot segment: 1 or 2. For any other segment it returns 0.
type dots func(segment text) int

func literalDots(s text) int {
	switch show(s) {
	case ".":
		return 1
	case "..":
		return 2
	}
	return 0
}

// escapedDots counts the dots of a segment. As in WHATWG's URL standard, %2e is a dot.
func escapedDots(s text) int {
	return literalDots(text(strings.ReplaceAll(strings.ReplaceAll(show(s), "%2e", "."), "%2E", ".")))
}

// resolveURL removes the dot segments of a URL's path as RFC 3986, 5.2.4 does.
func resolveURL(path text, of dots) text {
	if len(path) == 0 {
		return path
	}
	var out []text
	segments := splitText(path, '/')
	rooted := len(segments[0]) == 0
	if rooted {
		segments = segments[1:]
	}
	for i, s := range segments {
		d := of(s)
		if d == 0 {
			out = append(out, s)
			continue
		}
		if d == 2 && len(out) > 0 {
			out = out[:len(out)-1]
		}
		if i == len(segments)-1 {
			out = append(out, nil)
		}
	}
	if rooted {
		return concat(text("/"), joinText(out, '/'))
	}
	return joinText(out, '/')
}

func mergeSlashes(path text) text {
	var out text
	for i, r := range path {
		if r != '/' || i == 0 || path[i-1] != '/' {
			out = append(out, r)
		}
	}
	return out
}

// withoutDotParameters drops parameters (;…) after a dot segment, as Tomcat does.
func withoutDotParameters(path text) text {
	segments := splitText(path, '/')
	for i, s := range segments {
		if semicolon := slices.Index(s, ';'); semicolon > 0 && escapedDots(s[:semicolon]) > 0 {
			segments[i] = s[:semicolon]
		}
	}
	return joinText(segments, '/')
}

// posix resolves a path as the kernel does, except for symbolic links. Repeated slashes become one
// slash, but exactly two slashes at the start remain.
func posix(path text) text {
	slashes := 0
	for slashes < len(path) && path[slashes] == '/' {
		slashes++
	}
	root := text("/")
	switch slashes {
	case 0:
		root = nil
	case 2:
		root = text("//")
	}
	return resolveFrom(root, 0, path[slashes:], func(s text) text { return s })
}

// resolveFrom resolves the dot segments of rest below root. It never removes the first keep
// segments of rest. It applies clean to each segment.
func resolveFrom(root text, keep int, rest text, clean func(text) text) text {
	var out []text
	segments := splitText(rest, '/')
	for i, s := range segments {
		if i < keep {
			out = append(out, s)
			continue
		}
		switch literalDots(s) {
		case 1:
		case 2:
			switch top := len(out) - 1; {
			case top >= keep && literalDots(out[top]) != 2:
				out = out[:top]
			case len(root) == 0:
				out = append(out, s)
			}
		default:
			if s = clean(s); len(s) > 0 {
				out = append(out, s)
			}
		}
	}
	last := segments[len(segments)-1]
	joined := joinText(out, '/')
	switch {
	case len(out) > 0 && (len(last) == 0 || literalDots(last) > 0):
		return concat(root, joined, text("/"))
	case len(out)+len(root) == 0:
		return text(".")
	}
	return concat(root, joined)
}

// windows resolves a path as Windows does. It does not know 8.3 names and links.
func windows(path text) text {
	t := forward(path)
	switch upper := strings.ToUpper(show(t)); {
	case strings.HasPrefix(upper, "//?/UNC/"), strings.HasPrefix(upper, "/??/UNC/"):
		t = concat(text("//"), t[len("//?/UNC/"):])
	case (hasPrefix(t, "//?/") || hasPrefix(t, "//./") || hasPrefix(t, "/??/")) && isDrive(t[4:]):
		t = t[4:]
	}
	switch {
	case isDrive(t):
		return resolveFrom(t[:3], 0, trimSlashes(t[3:]), windowsSegment)
	case hasPrefix(t, "//"):
		return resolveFrom(text("//"), 2, mergeSlashes(trimSlashes(t)), windowsSegment)
	case hasPrefix(t, "/"):
		return resolveFrom(text("/"), 0, trimSlashes(t), windowsSegment)
	}
	return resolveFrom(nil, 0, t, windowsSegment)
}

func trimSlashes(t text) text {
	for len(t) > 0 && t[0] == '/' {
		t = t[1:]
	}
	return t
}

// windowsSegment drops the name of an alternate stream (:…), and dots and spaces at the end.
func windowsSegment(s text) text {
	if i := slices.Index(s, ':'); i >= 0 {
		s = s[:i]
	}
	for len(s) > 0 && (s[len(s)-1] == '.' || s[len(s)-1] == ' ') {
		s = s[:len(s)-1]
	}
	return s
}
