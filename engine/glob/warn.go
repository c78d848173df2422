package glob

import (
	"regexp"
	"slices"
	"strings"

	"writ.example/writ/engine/resource"
)

// Warning returns the reason why a pattern of a side can match hardly any resource, and a better
// pattern or advice. Both are empty if there is no such reason. The pattern must compile.
func Warning(pattern string, side resource.Side) (problem, instead string) {
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
	case side == resource.ForAllow && allowsNoAddress(pattern):
		return "allows no address, because a * that allows stops at the @",
			"write mailto:*@acme.example for the addresses of a domain, or mailto:** for all"
	case !isURL && isHost(pattern):
		if host, path, hasPath := strings.Cut(pattern, "/"); hasPath && path != "" {
			return "names the host " + host + " without a scheme, which no URL is", "write https://" + pattern
		}
		return "names a host without a scheme, which no URL is",
			"write https://" + strings.TrimSuffix(pattern, "/") + "/**"
	case !isURL && strings.HasPrefix(pattern, "*.") && strings.Contains(pattern[2:], ".") &&
		!strings.ContainsAny(pattern[2:], "/*@"):
		return "names a host without a scheme, which no URL is", "write https://" + pattern + "/**"
	case strings.HasPrefix(pattern, "/") && len(pattern) > 1 && !strings.ContainsAny(pattern[1:], "/*?[{.\\"):
		return "matches " + pattern + " alone and nothing in it", "write " + pattern + "/** as well"
	}
	return "", ""
}

// webPattern matches a scheme of the web, possibly with a wildcard at its end.
var webPattern = regexp.MustCompile(`^(?i:https?|wss?|ftp|\*|http\*|http\{,s\}|http\?)$`)

// allowsNoAddress reports whether a pattern is of addresses, and has a wildcard and no @.
func allowsNoAddress(pattern string) bool {
	const scheme = "mailto:"
	return len(pattern) > len(scheme) && strings.EqualFold(pattern[:len(scheme)], scheme) &&
		strings.Contains(pattern, "*") && !strings.Contains(pattern, "**") && !strings.Contains(pattern, "@")
}

// hostPattern is a name that begins with a host, as in api.acme.example/v1/**. The host may have
// wildcards and a port.
var hostPattern = regexp.MustCompile(`^((?:[A-Za-z0-9*{},_-]+\.)+)([A-Za-z]+)(?::\d+)?(?:/[^:@]*)?$`)

// topLevels are last labels that hosts have and files, tables and packages hardly ever have.
var topLevels = strings.Fields("com net org edu gov mil int info biz io dev app cloud ai co eu uk de fr nl ch at es " +
	"it be se no dk fi ie pl pt us ca au jp cn kr br example test invalid internal corp lan")

// isHost reports whether a pattern looks like a host, or like a host with a path. It reports false for
// the host of an image registry, because names of images have this form, and for the name of a package
// such as com.acme.app.
func isHost(pattern string) bool {
	m := hostPattern.FindStringSubmatch(pattern)
	if m == nil || !slices.Contains(topLevels, strings.ToLower(m[2])) {
		return false
	}
	first, _, _ := strings.Cut(strings.ToLower(pattern), ".")
	return !slices.Contains(topLevels, first) && !registryHost.MatchString(pattern)
}

// registryHost is the host of a registry of images.
var registryHost = regexp.MustCompile(
	`(?i)^(?:[^/]*\.)?(?:registry|docker|ghcr|gcr|quay|images|containers|dkr|ecr|azurecr|pkg)\.`)
