package scrub

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// cards finds card numbers: digits with a network's prefix and the right check digit, in
// one group or in several with a space or a dash between them. UUIDs and digests contain
// none.
func cards(text string) (spans []span) {
	for i := 0; i < len(text); {
		if !isDecimal(text[i]) {
			i++
			continue
		}
		end := digitsEnd(text, i)
		if !identifier(text, i, end) {
			spans = appendCards(spans, text, i, end)
		}
		i = end
	}
	return spans
}

// digitsEnd returns the end of the digits that begin at start, with single joints between them.
func digitsEnd(text string, start int) int {
	end := start
	for i := start; i < len(text); i++ {
		switch {
		case isDecimal(text[i]):
			end = i + 1
		case !isJoint(text[i]) || end != i:
			return end
		}
	}
	return end
}

// isJoint reports whether b may separate two groups of digits. A plus may do so because
// it encodes a space in a form.
func isJoint(b byte) bool { return b == ' ' || b == '-' || b == '+' }

// appendCards appends the card numbers in text[start:end] that consist of whole groups. If several
// card numbers begin at the same place, it appends the longest.
func appendCards(spans []span, text string, start, end int) []span {
	for i := start; i < end; i++ {
		if !isDecimal(text[i]) || i > start && isDecimal(text[i-1]) {
			continue
		}
		if last := cardEnd(text[:end], i); last > 0 {
			spans = append(spans, span{i, last, KindCard})
			i = last - 1
		}
	}
	return spans
}

// cardEnd returns the end of the longest card number that starts at i, 0 if none does.
func cardEnd(text string, i int) (end int) {
	var digits [19]byte // the most (ISO/IEC 7812)
	n := 0
	for j := i; j < len(text) && n < len(digits); j++ {
		if !isDecimal(text[j]) {
			continue
		}
		digits[n] = text[j]
		n++
		last := j+1 == len(text) || !isDecimal(text[j+1])
		if last && network(string(digits[:4]), n) && luhn(digits[:n]) && !number(text[:j+1], i, digits[:n]) {
			end = j + 1
		}
	}
	return end
}

// network reports whether a network issues numbers of n digits that begin with
// these four.
func network(first string, n int) bool {
	within := func(low, high string) bool { f := first[:len(low)]; return low <= f && f <= high }
	switch {
	case within("4", "4"): // Visa
		return n == 13 || n == 16 || n == 19
	case within("51", "55"), within("2221", "2720"): // Mastercard
		return n == 16
	case within("34", "34"), within("37", "37"): // American Express
		return n == 15
	case within("300", "305"), within("36", "36"), within("38", "39"): // Diners Club
		return n == 14 || n == 16
	case within("6011", "6011"), within("644", "649"), within("65", "65"), // Discover
		within("3528", "3589"): // JCB
		return n == 16 || n == 19
	case within("62", "62"): // UnionPay
		return n >= 16
	case within("5018", "5018"), within("5020", "5020"), within("5038", "5038"), within("5893", "5893"),
		within("6304", "6304"), within("6759", "6759"), within("6761", "6763"): // Maestro
		return n >= 13
	}
	return false
}

// number reports whether the digits at text[start:] are a fraction, a telephone number or
// a GTIN-13. A GTIN-13 computes its check digit in another way than a card number. Visa
// no longer issues card numbers of 13 digits.
func number(text string, start int, digits []byte) bool {
	grouped := len(text)-start > len(digits)
	if start > 1 && text[start-1] == '.' && isDecimal(text[start-2]) && !grouped {
		return true
	}
	return len(digits) == 13 && (start > 0 && text[start-1] == '+' || !grouped && gtin(digits))
}

// gtin reports whether the last digit is the check digit of a GTIN-13.
func gtin(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		sum += int(d-'0') * (1 + 2*(i%2))
	}
	return sum%10 == 0
}

// luhn reports whether the last digit is the check digit of a card number.
func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// identifier reports whether text[start:end] is part of a UUID or of a long
// hexadecimal number.
func identifier(text string, start, end int) bool {
	for start > 0 && isHexOrDash(text[start-1]) {
		start--
	}
	for end < len(text) && isHexOrDash(text[end]) {
		end++
	}
	token := text[start:end]
	if len(token) < hex.EncodedLen(len(uuid.Nil)) { // MD5 has as many bits
		return false
	}
	dashed := len(token) == 36 && token[8] == '-' && token[13] == '-' && token[18] == '-' && token[23] == '-'
	return dashed || strings.ContainsAny(token, "abcdefABCDEF")
}

func isHexOrDash(b byte) bool {
	return isDecimal(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' || b == '-'
}

func isDecimal(b byte) bool { return b >= '0' && b <= '9' }
