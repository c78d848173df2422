package reference

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// An element is an element of a metadata value that is read as a list, by "Lists and addresses in
// metadata" of decisions.md.
type element struct {
	self      string
	addresses []string
	// strange says that it is more than addresses, display names and comments.
	strange bool
}

// elements reads a value as a list. array says that it is a JSON array of strings.
func elements(v string) (all []element, array bool) {
	var parts []string
	array = json.Unmarshal([]byte(v), &parts) == nil && parts != nil
	if !array {
		parts = cutList([]rune(v), true)
	}
	for _, s := range parts {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, readElement(s))
		}
	}
	return all, array
}

// cutList cuts a list at commas, semicolons and line ends. With quotes it cuts outside of closed
// double quotes and angle brackets only.
func cutList(v []rune, quotes bool) (parts []string) {
	from := 0
	for i := 0; i <= len(v); i++ {
		if i == len(v) || strings.ContainsRune(",;\r\n", v[i]) {
			if s := strings.TrimSpace(string(v[from:i])); s != "" {
				parts = append(parts, s)
			}
			from = i + 1
			continue
		}
		if end := closing(v, i); quotes && v[i] != '(' && end > i {
			i = end
		}
	}
	return parts
}

// closing returns the index of the character that closes the quotes, comment or brackets at v[i], or
// -1.
func closing(v []rune, i int) int {
	closer, ok := map[rune]rune{'"': '"', '<': '>', '(': ')'}[v[i]]
	if !ok {
		return -1
	}
	depth := 0
	for j := i + 1; j < len(v); j++ {
		switch {
		case v[j] == '\\' && closer != '>':
			j++
		case v[j] == '(' && closer == ')':
			depth++
		case v[j] == closer && depth == 0:
			return j
		case v[j] == closer:
			depth--
		}
	}
	return -1
}

// readElement finds the addresses of an element. It has three passes: every piece with an @ is an
// address, the words that may stand beside addresses are taken away, and each address that remains
// must be whole.
func readElement(s string) element {
	e := element{self: s}
	if !strings.Contains(s, "@") {
		e.strange = true
		return e
	}
	for _, piece := range strings.FieldsFunc(s, addressSeparator) {
		if strings.Contains(piece, "@") {
			for _, a := range address(text(strings.TrimSuffix(piece, "."))) {
				e.addresses = append(e.addresses, show(a))
			}
			e.strange = e.strange || strings.HasPrefix(piece, "@") || strings.Count(piece, "@") > 1
		}
	}
	for _, word := range strings.FieldsFunc(withoutNames([]rune(s)), unicode.IsSpace) {
		e.strange = e.strange || !strings.Contains(word, "@") || strings.ContainsFunc(word, addressSeparator)
	}
	return e
}

// withoutNames drops the display names and comments of an element: quotes, comments and words without
// an @, in front of brackets too. Of <…> it keeps the content.
func withoutNames(v []rune) string {
	var out strings.Builder
	for i := 0; i < len(v); i++ {
		end := closing(v, i)
		if end < 0 {
			out.WriteRune(v[i])
			continue
		}
		inside := string(v[i+1 : end])
		switch v[i] {
		case '<':
			names := strings.FieldsFunc(out.String(), unicode.IsSpace)
			out.Reset()
			for _, word := range names {
				if strings.Contains(word, "@") {
					out.WriteString(word + " ")
				}
			}
			out.WriteString(" " + inside + " ")
			if rest := strings.TrimSpace(string(v[end+1:])); rest != "" && rest[0] != '(' {
				out.WriteString(" \\ ") // brackets end an address: another word is strange
			}
		case '"':
			if end+1 < len(v) && !unicode.IsSpace(v[end+1]) && v[end+1] != '<' {
				out.WriteString(`"`) // a quoted local part
			}
		}
		out.WriteRune(' ')
		i = end
	}
	return out.String()
}

// holds reports whether a comparison is true of an element: of one of its readings where that makes the
// outcome stricter, else of all.
func (e element) holds(c Cond, stricter bool) truth {
	switch c.Op {
	case "ne":
		return not(e.holds(Cond{Op: "eq", Value: c.Value}, !stricter))
	case "nin":
		return not(e.holds(Cond{Op: "in", Value: c.Value}, !stricter))
	}
	if stricter {
		bare := strings.ReplaceAll(e.self, `"`, "")
		readings := slices.Concat([]string{e.self, bare}, e.addresses, readElement(bare).addresses,
			cutList([]rune(e.self), false), cutList([]rune(bare), false))
		result := no
		for _, s := range readings {
			result = max(result, compare(c, s))
		}
		return result
	}
	result := yes
	for _, s := range e.addresses {
		if g, ok := c.Value.(string); c.Op == "glob" && ok && !strings.Contains(g, "@") && !strings.Contains(g, "**") {
			return no // a * does not cross an @
		}
		result = min(result, compare(c, s))
	}
	if e.strange {
		operand, ok := c.Value.(string)
		if strings.Contains(e.self, "@") && (!ok || strings.Contains(operand, "@")) {
			return no
		}
		result = min(result, compare(c, e.self))
	}
	return result
}

// compareElements evaluates every, some and size.
func compareElements(c Cond, v string, stricter bool) truth {
	all, array := elements(v)
	if c.Op == "size" {
		return compareSize(c.Value.(float64), v, all, array, stricter)
	}
	one, ok := c.Value.(Cond)
	if !ok {
		one = Cond{Op: "in", Value: c.Value}
	}
	if len(all) == 0 {
		return no
	}
	result := of(c.Op == "every")
	for _, e := range all {
		if c.Op == "every" {
			result = min(result, e.holds(one, stricter))
		} else {
			result = max(result, e.holds(one, stricter))
		}
	}
	return result
}

// compareSize counts in every way: the elements, what they are read as, and the parts of a cut that
// heeds no quotes.
func compareSize(n float64, v string, all []element, array, stricter bool) truth {
	items := 0
	for _, e := range all {
		items += len(e.addresses)
		if e.strange {
			items++
		}
	}
	counts := []int{len(all), items}
	if !array {
		counts = append(counts, len(cutList([]rune(v), false)))
	}
	same := func(count int) bool { return float64(count) == n }
	if stricter {
		return of(slices.ContainsFunc(counts, same))
	}
	return of(!slices.ContainsFunc(counts, func(count int) bool { return !same(count) }))
}
