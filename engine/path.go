package engine

import "strings"

// setPath sets the path to what is left of the canonical path s once doubled
// slashes are merged and dot segments are resolved. An absolute path stays
// within its root. A relative one stays relative: the ".." that would leave
// its root are counted, so that they can be read either way. A ".." after a
// doubled slash is refused: a//../b is a/b to a browser and b to a server that
// merges slashes first.
func (l *location) setPath(s string) *ResourceError {
	l.climbs = 0
	if s == "" {
		l.path = ""
		return nil
	}
	absolute := s[0] == '/'
	var buf [12]string
	kept := buf[:0]
	var gapBuf [12]bool
	gaps := gapBuf[:0] // which of kept a doubled slash follows
	directory := false
	for segment := range strings.SplitSeq(s, "/") {
		switch {
		case segment == "" || segment == ".":
			directory = true
			if n := len(gaps); n > 0 && segment == "" {
				gaps[n-1] = true
			}
		case segment == "..":
			directory = true
			n := len(kept)
			if n > 0 && gaps[n-1] {
				return &ResourceError{"it has a dot segment after a doubled slash"}
			}
			if n > 0 && (n != 1 || l.scheme != "file" || !isDrive(kept[0])) {
				kept, gaps = kept[:n-1], gaps[:n-1]
			} else if n == 0 && !absolute {
				l.climbs++
			}
		case hasDotParameter(segment):
			return &ResourceError{"it has a dot segment with a parameter"}
		default:
			directory = false
			kept, gaps = append(kept, segment), append(gaps, false)
		}
	}
	if l.scheme == "file" && len(kept) > 0 && isDrive(kept[0]) {
		kept[0] = asciiLower(kept[0][:1]) + ":"
	}
	l.path = joinPath(kept, absolute, directory)
	return nil
}

func joinPath(segments []string, absolute, directory bool) string {
	path := strings.Join(segments, "/")
	if absolute {
		path = "/" + path
	}
	if directory && len(segments) > 0 {
		path += "/"
	}
	if path == "" {
		return "."
	}
	return path
}

// hasDotParameter reports whether segment is a dot segment to servers that cut
// parameters off before they resolve it, and a plain segment to all others.
func hasDotParameter(segment string) bool {
	rest := strings.TrimLeft(segment, ".")
	dots := len(segment) - len(rest)
	return (dots == 1 || dots == 2) && (strings.HasPrefix(rest, ";") || strings.HasPrefix(rest, "%3B"))
}

// hasDotSegment reports whether s has dot segments when it is read as a path.
func hasDotSegment(s string) bool {
	if strings.IndexByte(s, '.') < 0 {
		return false
	}
	s = strings.ReplaceAll(decodeSlashes(s), `\`, "/")
	for segment := range strings.SplitSeq(strings.TrimLeft(s, "?#"), "/") {
		if segment == "." || segment == ".." || hasDotParameter(segment) {
			return true
		}
	}
	return false
}

const (
	// domainEnd are the characters that end a domain name after an @.
	domainEnd = ":,;!$&'()*+="
	// dots are the spellings of a dot that UTS 46 maps to one.
	dots = ".。．｡"
)

// lowerDomains returns path with every domain name after an @ in its first
// segment (mailto:a@Example.com, git@Example.com:org/repo) in its normal form.
// What has no dot is no domain: a version or a scope is left as it is.
func lowerDomains(path string) (string, *ResourceError) {
	if strings.IndexByte(path, '@') < 0 {
		return path, nil
	}
	first, rest := path, ""
	if i := strings.IndexByte(path, '/'); i >= 0 {
		first, rest = path[:i], path[i:]
	}
	parts := strings.Split(first, "@")
	for i, part := range parts[1:] {
		domain, after := part, ""
		if end := strings.IndexAny(part, domainEnd); end >= 0 {
			domain, after = part[:end], part[end:]
		}
		domain, err := normalDomain(decodeExcept(domain, "%/\\"))
		if err != nil {
			return "", err
		}
		if domain != "" {
			parts[i+1] = domain + after
		}
	}
	return strings.Join(parts, "@") + rest, nil
}

// normalDomain returns the normal form of a domain name, empty when s has no
// dot in any of its spellings, or an empty label, or characters that no name has.
func normalDomain(s string) (string, *ResourceError) {
	if !strings.ContainsAny(s, dots) {
		return "", nil
	}
	if !isASCII(s) {
		return normalHost(s, false)
	}
	for i := range len(s) {
		if c := s[i]; !isUnreserved(c) {
			return "", nil
		}
	}
	s = strings.TrimSuffix(asciiLower(s), ".")
	if s == "" || s[0] == '.' || strings.Contains(s, "..") {
		return "", nil
	}
	return s, nil
}
