package scrub

import "strings"

// asciiRun is how many consecutive bytes of ASCII are a text that is looked for in an
// encoding.
const asciiRun = 12

// encoding is a way to write bytes as digits of so many bits each.
type encoding struct {
	bits int
	// least is how many digits in a row a text is written with. Base64 of ASCII has other
	// digits than letters, digits and underscores only where every third character is one
	// of > ? ~.
	least int
	// line is the least length of a line that the next one continues: PEM has 64 digits a
	// line, MIME 76.
	line   int
	values [256]int8 // of digits; -1 for other bytes
}

var (
	base64Digits = newEncoding(6, 60, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_")
	hexDigits    = newEncoding(4, 0, "0123456789abcdef", "ABCDEF")
)

// newEncoding returns the encoding with these digits. others are other spellings of the
// last of them.
func newEncoding(bits, line int, digits, others string) *encoding {
	e := encoding{bits: bits, least: asciiRun * 8 / bits, line: line}
	for b := range e.values {
		e.values[b] = -1
	}
	for i := range len(digits) {
		e.values[digits[i]] = int8(i)
	}
	for i := range len(others) {
		e.values[others[i]] = int8(len(digits) - len(others) + i)
	}
	return &e
}

// encoded appends the parts of text that encode a text with a secret: base64, in either
// alphabet and with or without padding, or hexadecimal.
func (s *Scrubber) encoded(spans []span, text string, j *job) []span {
	j.inside = true
	defer func() { j.inside = false }()
	for i := 0; i < len(text); i++ {
		if base64Digits.values[text[i]] < 0 {
			continue
		}
		start := i
		end, lines := runEnd(text, start)
		i = end
		if i-start < base64Digits.least {
			continue
		}
		r := run{digits: text[start:i], start: start}
		if lines {
			r = r.joined()
		}
		for _, sp := range s.inRun(r, j) {
			for sp.end == i && i < len(text) && text[i] == '=' {
				sp.end, i = sp.end+1, i+1
			}
			spans = append(spans, sp)
		}
	}
	return spans
}

// runEnd returns where the digits of base64 from start on end, and whether they
// are several lines.
func runEnd(text string, start int) (end int, lines bool) {
	for line := start; ; lines = true {
		for end = line; end < len(text) && base64Digits.values[text[end]] >= 0; {
			end++
		}
		rest := strings.TrimPrefix(text[end:], "\r")
		if end-line < base64Digits.line || len(rest) < 2 || rest[0] != '\n' || base64Digits.values[rest[1]] < 0 {
			return end, lines
		}
		line = len(text) - len(rest) + 1
	}
}

// run is digits of base64 that stand in a row.
type run struct {
	digits string
	start  int
	at     []int // from start on, of each digit; nil if nothing is between them
}

// joined returns r without line ends.
func (r run) joined() run {
	joined := run{start: r.start}
	var b strings.Builder
	for i := range len(r.digits) {
		if base64Digits.values[r.digits[i]] >= 0 {
			b.WriteByte(r.digits[i])
			joined.at = append(joined.at, i)
		}
	}
	joined.digits = b.String()
	return joined
}

// place returns where in the text a digit is.
func (r run) place(digit int) int {
	if r.at != nil {
		digit = r.at[digit]
	}
	return r.start + digit
}

// inRun returns the parts of r that hold a secret.
func (s *Scrubber) inRun(r run, j *job) (spans []span) {
	for offset := range 4 {
		if promisingBase64(r.digits[offset:]) {
			spans = s.inDigits(spans, base64Digits, r, offset, len(r.digits), j)
		}
	}
	for i := 0; i < len(r.digits); i++ {
		start := i
		for i < len(r.digits) && hexDigits.values[r.digits[i]] >= 0 {
			i++
		}
		for offset := range 2 {
			if i-start >= hexDigits.least && promisingHex(r.digits[start+offset:i]) {
				spans = s.inDigits(spans, hexDigits, r, start+offset, i, j)
			}
		}
	}
	return merge(spans)
}

// promisingBase64 reports whether digits, decoded from the first one, contain nine
// consecutive bytes of text. Data that is no text seldom does.
func promisingBase64(digits string) bool {
	row := 0
	for ; len(digits) >= 4; digits = digits[4:] {
		a, b := byte(base64Digits.values[digits[0]]), byte(base64Digits.values[digits[1]])
		if !printable[a<<2|b>>4] {
			row = 0
			continue
		}
		c, d := byte(base64Digits.values[digits[2]]), byte(base64Digits.values[digits[3]])
		if !printable[b<<4|c>>2] || !printable[c<<6|d] {
			row = 0
		} else if row += 3; row > asciiRun-4 {
			return true
		}
	}
	return false
}

// promisingHex is promisingBase64 for hexadecimal.
func promisingHex(digits string) bool {
	row := 0
	for ; len(digits) >= 2; digits = digits[2:] {
		if !printable[byte(hexDigits.values[digits[0]])<<4|byte(hexDigits.values[digits[1]])] {
			row = 0
		} else if row++; row == asciiRun {
			return true
		}
	}
	return false
}

// inDigits appends the parts of r's digits from start to end that hold a secret
// when they are read as e.
func (s *Scrubber) inDigits(spans []span, e *encoding, r run, start, end int, j *job) []span {
	digits := r.digits[start:end]
	count := len(digits) * e.bits / 8
	for from := 0; from < count; from++ {
		to := from
		for to < count && printable[e.at(digits, to)] {
			to++
		}
		if to-from >= asciiRun {
			if found := s.find(e.text(digits, from, to), j); len(found) > 0 {
				first, last := start+from*8/e.bits, start+(to*8-1)/e.bits
				spans = append(spans, span{r.place(first), r.place(last) + 1, found[0].kind})
			}
		}
		from = to
	}
	return spans
}

// at returns byte i of the data that digits encode.
func (e *encoding) at(digits string, i int) byte {
	digit, used := i*8/e.bits, i*8%e.bits
	two := int(e.values[digits[digit]])<<e.bits | int(e.values[digits[digit+1]])
	return byte(two >> (2*e.bits - 8 - used))
}

// text returns the bytes [from, to) of the data that digits encode.
func (e *encoding) text(digits string, from, to int) string {
	b := make([]byte, 0, to-from)
	for i := from; i < to; i++ {
		b = append(b, e.at(digits, i))
	}
	return string(b)
}

// all returns the text that digits encode, "" if the data is not all text.
func (e *encoding) all(digits string) string {
	text := e.text(digits, 0, len(digits)*e.bits/8)
	for i := range len(text) {
		if !printable[text[i]] {
			return ""
		}
	}
	return text
}

// printable has the bytes that text in ASCII has.
var printable = func() (set [256]bool) {
	for b := ' '; b <= '~'; b++ {
		set[b] = true
	}
	set['\t'], set['\n'], set['\r'] = true, true, true
	return set
}()
