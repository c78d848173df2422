package scrub

import (
	"slices"
	"strings"
)

// asciiRun is the least number of consecutive ASCII bytes in encoded data that are read as
// text.
const asciiRun = 12

// encoding is a way to write bytes as digits, such as hexadecimal. Each digit holds the
// same number of bits.
type encoding struct {
	bits int
	// least is the least number of digits that encode asciiRun bytes. In base64 of ASCII only
	// the characters > ? ~ give digits that are not word characters, and only at every third
	// place.
	least int
	// line is the least length of a line that continues in the next one. PEM has 64 digits a
	// line, MIME 76.
	line   int
	values [256]int8 // of digits; -1 for other bytes
}

var (
	base64Digits = newEncoding(6, 60, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "-_")
	hexDigits    = newEncoding(4, 0, "0123456789abcdef", "ABCDEF")
)

// newEncoding returns the encoding with these digits. others are further spellings of the last
// digits.
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

// encoded appends the parts of text that encode a text with a secret. It reads
// hexadecimal and base64, in both alphabets and with or without padding.
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

// runEnd returns the end of the base64 digits that begin at start, and whether they have
// several lines.
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

// run is a sequence of base64 digits in a text.
type run struct {
	digits string
	start  int
	at     []int // offset of each digit from start; nil if the digits are contiguous
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

// place returns the index of a digit in the text.
func (r run) place(digit int) int {
	if r.at != nil {
		digit = r.at[digit]
	}
	return r.start + digit
}

// inRun returns the parts of r that hold a secret.
func (s *Scrubber) inRun(r run, j *job) (spans []span) {
	for offset := range 4 {
		spans = s.inDigits(spans, base64Digits, r, offset, len(r.digits), j)
	}
	for i := 0; i < len(r.digits); i++ {
		start := i
		for i < len(r.digits) && hexDigits.values[r.digits[i]] >= 0 {
			i++
		}
		for offset := range 2 {
			if i-start >= hexDigits.least {
				spans = s.inDigits(spans, hexDigits, r, start+offset, i, j)
			}
		}
	}
	return merge(spans)
}

// inDigits appends the parts of r's digits from start to end that hold a secret
// when they are read as e.
func (s *Scrubber) inDigits(spans []span, e *encoding, r run, start, end int, j *job) []span {
	var buf [512]byte
	data := e.decode(buf[:0], r.digits[start:end])
	for from := 0; from < len(data); from++ {
		to := from
		for to < len(data) && printable[data[to]] {
			to++
		}
		if to-from >= asciiRun {
			if found := s.find(string(data[from:to]), j); len(found) > 0 {
				first, last := start+from*8/e.bits, start+(to*8-1)/e.bits
				spans = append(spans, span{r.place(first), r.place(last) + 1, found[0].kind})
			}
		}
		from = to
	}
	return spans
}

// decode appends the whole bytes that digits encode.
func (e *encoding) decode(dst []byte, digits string) []byte {
	word, bits := uint(0), 0
	for i := range len(digits) {
		word, bits = word<<e.bits|uint(e.values[digits[i]]), bits+e.bits
		if bits >= 8 {
			bits -= 8
			dst = append(dst, byte(word>>bits))
		}
	}
	return dst
}

// all returns the text that digits encode. It returns "" if some of the data is not text.
func (e *encoding) all(digits string) string {
	data := e.decode(nil, digits)
	if slices.ContainsFunc(data, func(b byte) bool { return !printable[b] }) {
		return ""
	}
	return string(data)
}

// printable has the bytes that can occur in ASCII text.
var printable = func() (set [256]bool) {
	for b := ' '; b <= '~'; b++ {
		set[b] = true
	}
	set['\t'], set['\n'], set['\r'] = true, true, true
	return set
}()
