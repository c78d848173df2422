package glob

import (
	"regexp"
	"strings"
)

// Warning returns the reason why a pattern can match hardly any resource, and a better pattern or
// advice. Both are empty if there is no such reason. The pattern must compile.
func Warning(pattern string) (problem, instead string) {
	scheme, rest, isURL := strings.Cut(pattern, "://")
	authority, path, hasPath := strings.Cut(rest, "/")
	_, hash, fragment := strings.Cut(pattern, "#")
	switch {
	case isURL && scheme != "file" && strings.Contains(authority, "@"):
		return "has user info, which no reading of a resource keeps", "write it without what stands before the @"
	case isURL && fragment && !strings.HasSuffix(hash, "]"):
		return "has a fragment, which no reading of a URL keeps", "write it without the # and what follows"
	case isURL && webPattern.MatchString(scheme) && !strings.HasSuffix(authority, "**") && (!hasPath || path == ""):
		return "matches the root of the host alone", "write " + scheme + "://" + authority + "/** for all below it"
	case !isURL && strings.HasPrefix(pattern, "*.") && strings.Contains(pattern[2:], ".") &&
		!strings.ContainsAny(pattern[2:], "/*@"):
		return "names a host without a scheme, which no URL is", "write https://" + pattern + "/**"
	case strings.HasPrefix(pattern, "/") && len(pattern) > 1 && !strings.ContainsAny(pattern[1:], "/*?[{.\\"):
		return "matches " + pattern + " alone and nothing in it", "write " + pattern + "/** as well"
	}
	return "", ""
}

// webPattern is a scheme of the web. Its end may be a wildcard.
var webPattern = regexp.MustCompile(`^(?i:https?|wss?|ftp|\*|http\*|http\{,s\}|http\?)$`)
