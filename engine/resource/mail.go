package resource

import (
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mail is what the programs that may send to a text read in it: see [ReadMail].
type Mail struct {
	// Addresses has every address, with its domain as the DNS has it. A domain that clients map in
	// two ways gives two addresses. Count counts it once.
	Addresses []string
	Count     int
	// Strange says that the text is more than addresses with their display names and comments, so
	// that programs may read other addresses in it.
	Strange bool
	// Further has texts that only a block looks at: addresses that other programs would cut out of
	// an address with several @ or with the characters of a query.
	Further []string
}

// mailScheme begins a text that is read as a mailto: URL.
const mailScheme = "mailto:"

// IsMailto reports whether s begins with mailto:, in either case.
func IsMailto(s string) bool {
	return len(s) >= len(mailScheme) && strings.EqualFold(s[:len(mailScheme)], mailScheme)
}

// Unfolded returns a text as mailers read it that drop line ends and comments before they cut it.
func Unfolded(s string) string { return withoutComments(lineEnds.Replace(s)) }

var lineEnds = strings.NewReplacer("\r", "", "\n", "")

// MayHoldMail reports whether s may hold an address: it has an @, begins with mailto:, or has an
// encoded word.
func MayHoldMail(s string) bool {
	return strings.IndexByte(s, '@') >= 0 || IsMailto(s) || strings.Contains(s, "=?")
}

// ReadMail reads the addresses in s. It cuts s where the readers of a resource cut a list of
// addresses. Every piece with an @ is an address, also in quotes and comments. Words without an @
// are a display name or a comment if they stand in closed quotes, in closed parentheses or before a
// closed pair of angle brackets. All other words are strange. So is an address whose local part is
// empty, quoted or an encoded word, and one with two @.
//
// A mailto: is read as a URL: its to, cc and bcc are percent-decoded. Nothing else is.
func ReadMail(s string) Mail {
	if !IsMailto(s) {
		return readEntry(s)
	}
	t := text{scheme: mailScheme[:len(mailScheme)-1], rest: s[len(mailScheme):]}
	m := mailReader{text: &t}
	for _, list := range t.addressLists() {
		for entry := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
			m.read(entry)
		}
		m.Further = append(m.Further, t.reached(list, m.Addresses)...)
	}
	if m.Count == 0 {
		m.Strange = true
	}
	if strings.Contains(t.rest, "=?") || strings.ContainsFunc(t.rest, cutsAddress) {
		entry := readEntry(t.rest) // for a mailer mailto: may be the name of a group
		m.Further = append(append(m.Further, entry.Addresses...), entry.Further...)
	}
	return m.Mail
}

// readEntry reads the addresses in a text that is no URL.
func readEntry(s string) Mail {
	t := text{}
	m := mailReader{text: &t}
	m.read(s)
	domains := make(map[string]bool, len(m.Addresses))
	for _, a := range m.Addresses {
		domains[domainOf(a)] = true
	}
	m.Further = append(m.Further, t.reached(s, m.Addresses)...)
	encoded := strings.Contains(s, "=?")
	for _, repaired := range repairs(s) {
		other := mailReader{text: &t}
		other.read(repaired)
		m.Further = append(append(m.Further, other.Addresses...), other.Further...)
		if encoded {
			m.Further = append(m.Further, t.reached(repaired, other.Addresses)...)
		}
		m.Strange = m.Strange || slices.ContainsFunc(other.Addresses, func(a string) bool {
			return !domains[domainOf(a)]
		})
	}
	return m.Mail
}

// repairs returns what mailers make of s before they look for addresses: without comments and
// backslashes, without the white space beside a dot or an @, without any white space, without
// brackets, and with its encoded words decoded. Only texts that differ from s are returned.
func repairs(s string) (all []string) {
	if !strings.ContainsFunc(s, func(r rune) bool { return cutsAddress(r) || r == '=' }) {
		return nil
	}
	add := func(r string) string {
		if r != s && !slices.Contains(all, r) {
			all = append(all, r)
		}
		return r
	}
	bare := add(besideDots.ReplaceAllString(strings.ReplaceAll(withoutComments(s), `\`, ""), "$1"))
	add(strings.Join(strings.Fields(bare), ""))
	add(besideDots.ReplaceAllString(noBrackets.Replace(bare), "$1"))
	add(besideDots.ReplaceAllString(shortComment.ReplaceAllString(s, " "), "$1"))
	plain := add(strings.NewReplacer(`"`, "", "<", " ", ">", " ").Replace(bare))
	add(strings.Join(strings.Fields(plain), ""))
	add(encodedWord.ReplaceAllStringFunc(s, decodeWord))
	add(encodedWord.ReplaceAllStringFunc(strings.Join(strings.Fields(s), ""), decodeWord))
	return all
}

func decodeWord(word string) string {
	decoded, err := new(mime.WordDecoder).Decode(word)
	if err != nil { // some decoders skip what is not Base64, and take an unknown charset for ASCII
		parts := strings.SplitN(strings.TrimSuffix(word, "?="), "?", 4)
		if strings.EqualFold(parts[2], "b") {
			parts[3] = notBase64.ReplaceAllString(parts[3], "")
		}
		decoded, err = new(mime.WordDecoder).Decode("=?utf-8?" + parts[2] + "?" + parts[3] + "?=")
	}
	if err != nil {
		return word
	}
	return " " + decoded + " "
}

var notBase64 = regexp.MustCompile(`[^A-Za-z0-9+/=]+`)

var (
	noBrackets  = strings.NewReplacer("<", "", ">", "")
	encodedWord = regexp.MustCompile(`=\?[^?]*\?[bBqQ]\?[^?]*\?=`)
)

var besideDots = regexp.MustCompile(`\s*([.@])\s*`)

// withoutComments returns s without its comments, and without those in them.
func withoutComments(s string) string {
	for depth := 0; depth < maxComments && strings.IndexByte(s, '(') >= 0; depth++ {
		s = comment.ReplaceAllString(s, " ")
	}
	return s
}

var (
	comment      = regexp.MustCompile(`\([^()]*\)`)
	shortComment = regexp.MustCompile(`\([^)]*\)`) // as a mailer reads it that does not nest comments
)

// maxComments is how deep comments nest in a text that mailers still deliver.
const maxComments = 4

// FoldAddress returns the readings of an address, each with its domain as the DNS has it. Without
// an @ it returns s.
func FoldAddress(s string) []string {
	if strings.IndexByte(s, '@') < 0 {
		return []string{s}
	}
	return (&text{}).address(s)
}

// FoldDomain returns the names that clients look up for a domain. If they look up none, it returns
// the domain in lower case.
func FoldDomain(domain string) []string { return (&text{}).domains(domain) }

// CutList returns the elements of a list: the parts between commas, semicolons and line ends outside
// of closed double quotes and angle brackets. With everywhere it cuts in quotes and brackets too.
// Elements are trimmed, and empty ones are dropped.
func CutList(s string, everywhere bool) []string {
	var all []string
	start := 0
	add := func(end int) {
		if e := strings.TrimSpace(s[start:end]); e != "" {
			all = append(all, e)
		}
		start = end + 1
	}
	for i, open := 0, ""; i < len(s); i++ {
		switch c := s[i]; c {
		case ',', ';', '\n', '\r':
			add(i)
		case '"', '<':
			if everywhere || strings.IndexByte(open, c) >= 0 {
				continue
			}
			if n := closedBy(s[i:]); n > 0 {
				i += n
			} else {
				open += string(c) // what stays open once is not looked for again: that would take quadratic time
			}
		}
	}
	add(len(s))
	return all
}

// closers maps what opens quotes, a comment or brackets to what closes it.
var closers = map[byte]byte{'"': '"', '(': ')', '<': '>'}

// closedBy returns the index of the character that closes what the start of s opens, or -1. In
// quotes and comments a backslash takes away the meaning of the next character.
func closedBy(s string) int {
	closing, depth := closers[s[0]], 1
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && closing != '>':
			i++
		case c == closing:
			if depth--; depth == 0 {
				return i
			}
		case c == '(' && closing == ')':
			depth++
		}
	}
	return -1
}

// mailReader collects what it reads.
type mailReader struct {
	text *text
	Mail
}

// read reads one entry of a list. Quotes, comments and brackets nest in it.
func (m *mailReader) read(s string) { m.within(s, 0) }

// within reads a part of an entry that stands in quotes, a comment or brackets, which opened begins.
// It is 0 in the open.
func (m *mailReader) within(s string, opened byte) {
	start := 0
	quoted := false // closed quotes end right before start
	ended := false  // closed brackets have ended the address
	word := func(end int) {
		if start < end {
			m.Strange = m.Strange || ended
			m.word(s[start:end], opened, quoted, hasBrackets(s[end:]))
		}
		quoted = false
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !cutsAddress(r) && r != ',' && r != ';' {
			i += size
			continue
		}
		word(i)
		end := i + size
		switch {
		case unicode.IsSpace(r) || opened == '"' || opened == '(':
		case closers[s[i]] == 0:
			m.Strange = true
		default:
			if n := m.closed(s[i:]); n > 0 {
				m.Strange = m.Strange || ended && r != '('
				m.within(s[i+1:i+n], s[i])
				end, quoted, ended = i+n+1, r == '"', ended || r == '<'
			}
		}
		start, i = end, end
	}
	word(len(s))
}

func domainOf(address string) string { return address[strings.LastIndexByte(address, '@'):] }

// isMapped reports whether UTS 46 makes another domain of the letters beyond ASCII than Punycode alone
// does: mailers do not all map them.
func isMapped(domain, name string) bool {
	if isASCII(domain) {
		return false
	}
	if _, found := FindInvisible(domain); found {
		return true
	}
	labels, names := strings.Split(strings.TrimSuffix(domain, "."), "."), strings.Split(name, ".")
	if len(labels) != len(names) {
		return true
	}
	for i, label := range labels {
		if !isASCII(label) && !strings.HasPrefix(names[i], "xn--") {
			return true
		}
	}
	return false
}

// closed returns what closedBy does, or -1 if the text is strange already: then it does not matter
// what is closed, and looking for it again would take quadratic time.
func (m *mailReader) closed(s string) int {
	if m.Strange {
		return -1
	}
	n := closedBy(s)
	m.Strange = n < 0
	return n
}

// word adds a word. named says that closed brackets follow it.
func (m *mailReader) word(s string, opened byte, quoted, named bool) {
	at := strings.IndexByte(s, '@')
	switch {
	case at >= 0:
		m.Count++
		addresses := m.text.address(s)
		m.Addresses = append(m.Addresses, addresses...)
		m.Strange = m.Strange || at == 0 || isMapped(s[strings.LastIndexByte(s, '@')+1:], domainOf(addresses[0])[1:]) ||
			quoted || strings.Contains(s, "=?") || strings.LastIndexByte(s, '@') > at
		m.further(s, addresses)
	case opened == '"' || opened == '(' || opened == 0 && named:
	default:
		m.Strange = true
	}
}

// hasBrackets reports whether s has a closed pair of angle brackets.
func hasBrackets(s string) bool {
	opens := strings.IndexByte(s, '<')
	return opens >= 0 && strings.IndexByte(s[opens:], '>') > 0
}

// further adds the addresses that other programs would cut out of an address: each @ with the name
// after it, and the text before it up to a character of a query or an apostrophe.
func (m *mailReader) further(s string, known []string) {
	halves := strings.Split(s, "@")
	for i := 1; i < len(halves); i++ {
		local, domain := halves[i-1], halves[i]
		if end := strings.IndexFunc(domain, endsDomain); end >= 0 {
			domain = domain[:end]
		}
		domain = plainPunycode.ReplaceAllString(domain, "$1")
		locals := []string{local}
		if short := 1 + strings.LastIndexAny(local, "?&=/#'`"); short > 0 {
			locals = append(locals, local[short:])
		}
		for _, l := range locals {
			for _, a := range m.text.address(l + "@" + domain) {
				if !slices.Contains(known, a) {
					m.Further = append(m.Further, a)
				}
			}
		}
	}
}

// plainPunycode matches a label in Punycode that has only ASCII. The DNS has none, but decoders do.
var plainPunycode = regexp.MustCompile(`(?i)\bxn--([a-z0-9-]*[a-z0-9])-\B`)

// endsDomain reports whether r cannot be part of a domain.
func endsDomain(r rune) bool {
	return r < utf8.RuneSelf && r != '-' && r != '.' && r != '_' && !isDigit(byte(r)) && (r|0x20 < 'a' || r|0x20 > 'z')
}
