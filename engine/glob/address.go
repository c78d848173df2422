package glob

import (
	"slices"
	"strings"

	"writ.example/writ/engine/resource"
)

// Addresses is a set of patterns, as [CompileSet] compiles them, whose * ends at an @ too.
type Addresses struct{ *List }

// CompileAddresses compiles patterns of mail addresses. The error is a *[PatternError].
func CompileAddresses(patterns []string) (Addresses, error) {
	l, err := CompileSet(patterns)
	return Addresses{l}, err
}

// Match returns the index of the first pattern that matches s, or -1.
func (a Addresses) Match(s string) int {
	i, _ := a.search(s, resource.All, resource.StopsAtAt, nil)
	return i
}

// AddressExpressions returns the alternatives of a pattern of [CompileAddresses], each as an
// expression without anchors. The pattern must compile.
func AddressExpressions(pattern string) []string { return plainExpressions(pattern, starOfAddresses) }

// maxFolded bounds the alternatives of a pattern whose domains are folded one by one. The domain of
// a pattern with more is only put into lower case.
const maxFolded = 64

// FoldDomains returns patterns that match the addresses that pattern means, with their domains as
// the DNS has them: see [resource.FoldAddress]. A pattern without an @ stays as it is.
func FoldDomains(pattern string) []string {
	if strings.IndexByte(pattern, '@') < 0 {
		return []string{pattern}
	}
	var all []string
	for _, p := range expandBraces(pattern) {
		at := strings.LastIndexByte(p, '@') + 1
		for _, domain := range foldLabels(p[at:]) {
			if s := p[:at] + domain; !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// foldLabels returns the readings of a domain with wildcards. Labels with wildcards are put into
// lower case.
func foldLabels(domain string) []string {
	if !strings.ContainsAny(domain, `*?[{\`) {
		return resource.FoldDomain(domain)
	}
	folded := [2][]string{} // a domain has at most two readings
	for label := range strings.SplitSeq(strings.TrimSuffix(domain, "."), ".") {
		names := []string{strings.ToLower(label)}
		if label != "" && !strings.ContainsAny(label, `*?[{\`) {
			names = resource.FoldDomain(label)
		}
		folded[0], folded[1] = append(folded[0], names[0]), append(folded[1], names[len(names)-1])
	}
	return slices.Compact([]string{strings.Join(folded[0], "."), strings.Join(folded[1], ".")})
}

// expandBraces returns the alternatives of a pattern, without braces. If there are too many, it
// returns the pattern.
func expandBraces(pattern string) []string {
	done, left := []string(nil), []string{pattern}
	for len(left) > 0 {
		p := left[len(left)-1]
		left = left[:len(left)-1]
		start, cuts := braces(p)
		if len(cuts) == 0 {
			done = append(done, p)
			continue
		}
		for i, end := range cuts {
			from := start + 1
			if i > 0 {
				from = cuts[i-1] + 1
			}
			left = append(left, p[:start]+p[from:end]+p[cuts[len(cuts)-1]+1:])
		}
		if len(left)+len(done) > maxFolded {
			return []string{pattern}
		}
	}
	return done
}

// braces returns the place of the first brace of p, and the places of its commas and of the brace
// that closes it. If no brace is closed, cuts is nil.
func braces(p string) (start int, cuts []int) {
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			if n := strings.IndexByte(p[i:], ']'); n > 0 {
				i += n
			}
		case '{':
			if depth++; depth == 1 {
				start = i
			}
		case ',':
			if depth == 1 {
				cuts = append(cuts, i)
			}
		case '}':
			if depth--; depth == 0 {
				return start, append(cuts, i)
			}
		}
	}
	return 0, nil
}
