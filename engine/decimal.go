package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// A decimal is an optional sign, digits and, behind a point, optionally further
// digits, at most maxDecimalDigits on each side: no exponent, no white space. The
// bound is far above any amount, and OPA compares such numbers exactly.
const maxDecimalDigits = 40

// decimalExpression is the regular expression of a decimal.
func decimalExpression() string {
	return fmt.Sprintf(`^[+-]?[0-9]{1,%[1]d}(?:[.][0-9]{1,%[1]d})?$`, maxDecimalDigits)
}

// decimal is a decimal without zeros that say nothing.
type decimal struct {
	negative        bool
	whole, fraction string
}

func parseDecimal(s string) (d decimal, ok bool) {
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
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxDecimalDigits
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

// LooksLikeNumber reports whether who orders by s most likely meant a number.
func LooksLikeNumber(s string) bool {
	_, ok := parseDecimal(strings.TrimSpace(s))
	return ok
}

var errNoDecimal = errors.New("a metadata value that is compared with a number is not a decimal")

// decimalCompare is decimal_compare(a, b), -1, 0 or 1.
func decimalCompare(a, b ref.Val) ref.Val {
	s, ok := a.(types.String)
	t, okToo := b.(types.String)
	if !ok || !okToo {
		return types.MaybeNoSuchOverloadErr(a)
	}
	d, ok := parseDecimal(string(s))
	e, okToo := parseDecimal(string(t))
	if !ok || !okToo {
		return types.WrapErr(errNoDecimal)
	}
	return types.Int(d.compare(e))
}
