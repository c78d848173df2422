package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// regexSigns match texts that are common in regular expressions and rare in names.
var regexSigns = regexp.MustCompile(
	`^\^|^\.[*+]|\.\+|\]\+|\(\?|\([^()]*\|[^()]*\)|\\[dwsDWSb](?:[+*?{\])$.]|$)|[\w)*+}\]]\$$`,
)

// shareName matches a hidden share of Windows, such as \\host\C$.
var shareName = regexp.MustCompile(`^(?:\\\\|//|[a-z]+://).*\$$`)

// regexSign returns the part of a glob that looks like a regular expression, or "".
func regexSign(pattern string) string {
	sign := regexSigns.FindString(pattern)
	if strings.HasSuffix(sign, "$") && len(sign) == 2 && shareName.MatchString(pattern) {
		return ""
	}
	return sign
}

const globInstead = `write a glob: ** for any characters, * within a segment, {a,b} for either; or {"$regex":"…"} in a rule`

func looksLikeRegex(pattern, sign string) string {
	return fmt.Sprintf("%s looks like a regular expression (%s), and is matched as a glob", condition.Quote(pattern),
		sign)
}

// foldedForms matches patterns that block in any case: addresses, paths of Windows and URLs.
var foldedForms = regexp.MustCompile(`^(?i:mailto|sms|tel):|^[^/\\]*@[^/\\]*$|://|^[A-Za-z]:[/\\]|^\\\\`)

// oneCase finds the letters that a blocked pattern has in one case only. It returns them in quotes,
// with advice to write a pattern that has both cases. Both results are "" if there is no such
// letter. A letter is ignored if no allowed pattern allows its other case.
func oneCase(pattern string, allowed literals) (letters, instead string) {
	if foldedForms.MatchString(pattern) {
		return "", ""
	}
	var both strings.Builder
	var missing []string
	c := caser{pattern: pattern, allowed: allowed, literal: true}
	for c.next() {
		both.WriteString(c.both)
		if c.both != c.token {
			missing = append(missing, c.token)
		}
	}
	if len(missing) == 0 {
		return "", ""
	}
	letters = condition.Quote(strings.Join(missing, ""))
	if _, err := glob.Compile([]string{both.String()}, resource.ForBlock); err != nil {
		return letters, "write each letter in both cases, such as [pP]"
	}
	return letters, "write " + both.String()
}

// caser splits a pattern into tokens.
type caser struct {
	pattern string
	allowed literals
	at      int
	// token is one character, class or escape. both is the token for both cases of its letters.
	token, both string
	// literal is true until the first wildcard of the pattern.
	literal bool
}

func (c *caser) next() bool {
	rest := c.pattern[c.at:]
	if rest == "" {
		return false
	}
	c.token = rest[:1]
	switch {
	case rest[0] == '\\' && len(rest) > 1:
		c.token = rest[:2]
	case rest[0] == '[' && strings.IndexByte(rest, ']') > 1:
		c.token = rest[:strings.IndexByte(rest, ']')+1]
	}
	c.both = c.token
	switch {
	case len(c.token) == 1 && toggle(c.token) != c.token && c.counts():
		c.both = "[" + c.token + toggle(c.token) + "]"
	case len(c.token) > 2 && c.token[1] != '!':
		switch class := c.token[1 : len(c.token)-1]; {
		case hasBoth(class) || strings.Contains(c.pattern, toggle(c.token)):
		case strings.Contains(class, "-"): // a range must be the only part of its class
			c.both = "{" + c.token + "," + toggle(c.token) + "}"
		default:
			c.both = "[" + class + toggle(class) + "]"
		}
	}
	c.literal = c.literal && !strings.ContainsAny(c.token[:1], `*?[]{}\`)
	c.at += len(c.token)
	return true
}

func (c *caser) counts() bool {
	return !c.literal || c.allowed.mayMatch(c.pattern[:c.at]+toggle(c.token))
}

// literals has the text before the first wildcard of each pattern in a list.
type literals struct {
	sorted []string
	// open has the texts that are directly before a wildcard.
	open map[string]bool
}

func literalsOf(patterns []string) literals {
	l := literals{open: make(map[string]bool)}
	list, err := glob.Compile(patterns, resource.ForAllow)
	if err != nil {
		return l // cannot fail: the patterns have compiled
	}
	for literal, whole := range list.Literals {
		l.sorted = append(l.sorted, literal)
		l.open[literal] = l.open[literal] || !whole
	}
	slices.Sort(l.sorted)
	return l
}

// mayMatch reports whether a pattern may match a text that begins with start. It returns true if
// there are no patterns, because then everything is allowed.
func (l literals) mayMatch(start string) bool {
	i, _ := slices.BinarySearch(l.sorted, start)
	if len(l.sorted) == 0 || i < len(l.sorted) && strings.HasPrefix(l.sorted[i], start) {
		return true
	}
	for n := range len(start) + 1 {
		if l.open[start[:n]] {
			return true
		}
	}
	return false
}

// hasBoth reports whether a class has each of its letters in both cases.
func hasBoth(class string) bool {
	return !strings.ContainsFunc(toggle(class), func(r rune) bool { return !strings.ContainsRune(class, r) })
}

// toggle returns s with each ASCII letter in its other case.
func toggle(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, s)
}
