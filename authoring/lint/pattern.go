package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"writ/engine/condition"
	"writ/engine/glob"
	"writ/engine/resource"
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

// foldedForms match the patterns that block in any case: addresses, paths of Windows and URLs.
var foldedForms = regexp.MustCompile(`^(?i:mailto|sms|tel):|^[^/\\]*@[^/\\]*$|://|^[A-Za-z]:[/\\]|^\\\\`)

// oneCase returns the letters of a blocked pattern that it has in one case only, in quotes, and a
// pattern with both cases. Both are "" without such a letter. A letter does not count if no
// allowed pattern allows its other case.
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

// caser cuts a pattern into tokens.
type caser struct {
	pattern string
	allowed literals
	at      int
	// token is one character, class or escape. both is the same in both cases.
	token, both string
	// literal is set until the first wildcard.
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
		case strings.Contains(class, "-"): // a range stands alone
			c.both = "{" + c.token + "," + toggle(c.token) + "}"
		default:
			c.both = "[" + class + toggle(class) + "]"
		}
	}
	c.literal = c.literal && !strings.ContainsAny(c.token[:1], `*?[]{}\`)
	c.at += len(c.token)
	return true
}

// counts reports whether the other case of the letter may be allowed.
func (c *caser) counts() bool {
	return !c.literal || c.allowed.mayMatch(c.pattern[:c.at]+toggle(c.token))
}

// literals are the texts of a list's patterns before their first wildcards.
type literals struct {
	sorted []string
	// open has the texts that a wildcard follows.
	open map[string]bool
}

func literalsOf(patterns []string) literals {
	l := literals{open: make(map[string]bool)}
	list, err := glob.Compile(patterns, resource.ForAllow)
	if err != nil {
		return l // they have compiled
	}
	for literal, whole := range list.Literals {
		l.sorted = append(l.sorted, literal)
		l.open[literal] = l.open[literal] || !whole
	}
	slices.Sort(l.sorted)
	return l
}

// mayMatch reports whether a pattern may match a text that starts with start. Without patterns
// everything is allowed.
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

// hasBoth reports whether a class has both cases of each letter that it names.
func hasBoth(class string) bool {
	return !strings.ContainsFunc(toggle(class), func(r rune) bool { return !strings.ContainsRune(class, r) })
}

// toggle returns s with the other case of each ASCII letter.
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
