// Package printable makes a stranger's text fit to print. A control character in it can hide, recolour or
// fake lines of a terminal, and a character of direction can turn a name around.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with each character that shows nothing of its own as an escape of JSON, such as \u001b. So
// JSON without line breaks keeps its meaning. Bytes that are no UTF-8 become U+FFFD.
func Text(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, hidden) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if !hidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// Lines returns s with each of its lines as [Text] returns it.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Text(line)
	}
	return strings.Join(lines, "\n")
}

// hidden reports whether a character cannot be seen or changes how others are seen. In regular expressions it
// is [\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}], which the console's script has.
func hidden(r rune) bool {
	return !unicode.IsGraphic(r) ||
		unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
