package scrub

// maxEscapes is how often a text may be percent-encoded.
const maxEscapes = 3

// decoded appends the secrets of the readings of text in which its
// percent-escapes are decoded, once, twice and so on, as spans of text itself.
func (s *Scrubber) decoded(spans []span, text string, work *int) []span {
	reading := text
	var at []int // of each byte of the reading and of its end, in text; nil: the same
	for range maxEscapes {
		next, nextAt, changed := unescape(reading, at)
		if !changed {
			return spans
		}
		reading, at = next, nextAt
		for _, sp := range s.match(nil, reading, s.prefilter.scan(reading), work) {
			spans = append(spans, span{at[sp.start], at[sp.end], sp.kind})
		}
	}
	if _, _, changed := unescape(reading, at); changed {
		spans = append(spans, span{0, len(text), KindUnread})
	}
	return spans
}

// unescape decodes the percent-escapes of s, whose bytes come from the places at
// of another text.
func unescape(s string, at []int) (string, []int, bool) {
	place := func(i int) int {
		if at == nil {
			return i
		}
		return at[i]
	}
	out, from := make([]byte, 0, len(s)), make([]int, 0, len(s)+1)
	changed := false
	for i := 0; i < len(s); {
		from = append(from, place(i))
		if high, low := hexAt(s, i+1), hexAt(s, i+2); s[i] == '%' && high >= 0 && low >= 0 {
			out = append(out, byte(high<<4|low))
			i += 3
			changed = true
			continue
		}
		out = append(out, s[i])
		i++
	}
	return string(out), append(from, place(len(s))), changed
}

// hexAt returns the value of the hexadecimal digit at s[i], -1 if there is none.
func hexAt(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch b := s[i]; {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}
