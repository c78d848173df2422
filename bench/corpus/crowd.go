package corpus

import (
	"fmt"
	"strings"

	"writ.example/writ/engine"
)

// Policy returns the n-th policy of a crowd. The first is [ReferencePolicy]. The others have
// the same shape and allow [AllowedIntent] under their own PolicyID. A list entry that does not
// decide that intent occurs in only one of the policies.
func Policy(n int) *engine.ActionPolicy {
	p, in := ReferencePolicy(), AllowedIntent()
	if n == 0 {
		return p
	}
	p.PolicyID = fmt.Sprintf("%s%012x", PolicyID[:24], n)
	for i, text := range p.AllowedActionTypes {
		if text != in.ActionType {
			p.AllowedActionTypes[i] = fmt.Sprintf("o%d.%s", n, text)
		}
	}
	for i, text := range p.DeniedActionTypes {
		p.DeniedActionTypes[i] = fmt.Sprintf("o%d.%s", n, text)
	}
	for i, pattern := range p.AllowedResourcePatterns {
		if pattern != "https://api.stripe.com/v1/charges/*" {
			p.AllowedResourcePatterns[i] = numbered(pattern, n)
		}
	}
	for i, pattern := range p.BlockedResourcePatterns {
		p.BlockedResourcePatterns[i] = numbered(pattern, n)
	}
	return p
}

// numbered puts n into a pattern and leaves the wildcards as they are.
func numbered(pattern string, n int) string {
	number := fmt.Sprintf("-%d", n)
	if host := ".com/"; strings.Contains(pattern, host) {
		return strings.Replace(pattern, host, number+host, 1)
	}
	if first, rest, _ := strings.Cut(pattern, "/"); first != "**" {
		return first + number + "/" + rest
	}
	return pattern + number
}
