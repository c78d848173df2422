package condition

import (
	"cmp"
	"fmt"
	"strings"
)

// A decimal is an optional sign and digits, and optionally a point and further digits. Each side
// of the point has at most maxDigits digits. A decimal has no exponent and no white space.

// DecimalExpression is the regular expression of a decimal.
func DecimalExpression() string {
	return fmt.Sprintf(`^[+-]?[0-9]{1,%[1]d}(?:[.][0-9]{1,%[1]d})?$`, maxDigits)
}

// decimal is a decimal without leading zeros in the whole part and without trailing zeros in the
// fraction.
type decimal struct {
	negative        bool
	whole, fraction string
}

func parseDecimal(s string) (d decimal, ok bool) {
	if len(s) > len("-.")+2*maxDigits {
		return d, false
	}
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.negative, s = s[0] == '-', s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return d, false
	}
	d.whole, d.fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	d.negative = d.negative && d.whole+d.fraction != ""
	return d, true
}

func isDigits(s string) bool {
	if s == "" || len(s) > maxDigits {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func (d decimal) compare(e decimal) int {
	switch {
	case d.negative && e.negative:
		return e.magnitude(d)
	case d.negative:
		return -1
	case e.negative:
		return 1
	}
	return d.magnitude(e)
}

func (d decimal) magnitude(e decimal) int {
	return cmp.Or(
		cmp.Compare(len(d.whole), len(e.whole)),
		strings.Compare(d.whole, e.whole),
		strings.Compare(d.fraction, e.fraction),
	)
}

// LooksLikeNumber reports whether s looks like a number. An author who orders a metadata value by
// such a text most likely meant a number.
func LooksLikeNumber(s string) bool {
	_, ok := parseDecimal(strings.TrimSpace(s))
	return ok
}
