package receipt

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting that parseJSON follows.
const maxDepth = 1000

type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "boolean"
	kindNumber kind = "number"
	kindString kind = "string"
	kindArray  kind = "array"
	kindObject kind = "object"
)

// value is one JSON value. text is a string's decoded content, or the literal
// of a number, a boolean or null as it was written.
type value struct {
	kind    kind
	text    string
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

// parseJSON reads exactly one I-JSON value (RFC 7493). It exists because
// encoding/json keeps the last of duplicate members, matches names without
// regard to case, and replaces invalid UTF-8 and lone surrogates: each of
// these would let two readers see two receipts in the same bytes.
func parseJSON(data []byte) (value, error) {
	p := &parser{data: data}
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	if p.space(); p.pos < len(p.data) {
		return value{}, p.errorf("data after the value")
	}
	return v, nil
}

type parser struct {
	data []byte
	pos  int
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("JSON offset %d: %s", p.pos, fmt.Sprintf(format, args...))
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, or 0 at the end: a NUL
// starts no token, so the two need not be told apart.
func (p *parser) peek() byte {
	p.space()
	return p.at()
}

func (p *parser) at() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// take consumes c if it is the next byte.
func (p *parser) take(c byte) bool {
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, p.errorf("nested deeper than %d", maxDepth)
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		s, err := p.string()
		return value{kind: kindString, text: s}, err
	case c == 't':
		return p.literal("true", kindBool)
	case c == 'f':
		return p.literal("false", kindBool)
	case c == 'n':
		return p.literal("null", kindNull)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	return value{}, p.errorf("no value")
}

func (p *parser) literal(word string, k kind) (value, error) {
	if len(p.data)-p.pos < len(word) || string(p.data[p.pos:p.pos+len(word)]) != word {
		return value{}, p.errorf("no value")
	}
	p.pos += len(word)
	return value{kind: k, text: word}, nil
}

func (p *parser) object(depth int) (value, error) {
	v := value{kind: kindObject}
	p.pos++
	if p.peek() == '}' {
		p.pos++
		return v, nil
	}
	seen := make(map[string]bool)
	for {
		if p.peek() != '"' {
			return value{}, p.errorf("no member name")
		}
		name, err := p.string()
		if err != nil {
			return value{}, err
		}
		if seen[name] {
			return value{}, p.errorf("duplicate member %q", name)
		}
		seen[name] = true
		if p.space(); !p.take(':') {
			return value{}, p.errorf("no colon after member name %q", name)
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.members = append(v.members, member{name, item})
		if done, err := p.next('}'); done || err != nil {
			return v, err
		}
	}
}

func (p *parser) array(depth int) (value, error) {
	v := value{kind: kindArray}
	p.pos++
	if p.peek() == ']' {
		p.pos++
		return v, nil
	}
	for {
		item, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
		if done, err := p.next(']'); done || err != nil {
			return v, err
		}
	}
}

// next consumes what follows an element: a comma, or the closing byte, for
// which it reports true.
func (p *parser) next(closing byte) (bool, error) {
	p.space()
	switch {
	case p.take(','):
		return false, nil
	case p.take(closing):
		return true, nil
	}
	return false, p.errorf("no comma and no %q", closing)
}

func (p *parser) number() (value, error) {
	start := p.pos
	p.take('-')
	if !p.take('0') && !p.digits() {
		return value{}, p.errorf("no digit")
	}
	if p.take('.') && !p.digits() {
		return value{}, p.errorf("no digit after the point")
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if !p.digits() {
			return value{}, p.errorf("no digit in the exponent")
		}
	}
	return value{kind: kindNumber, text: string(p.data[start:p.pos])}, nil
}

func (p *parser) digits() bool {
	start := p.pos
	for c := p.at(); '0' <= c && c <= '9'; c = p.at() {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) string() (string, error) {
	p.pos++
	var out []byte
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(out), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < ' ':
			return "", p.errorf("control character in a string")
		default:
			r, size := utf8.DecodeRune(p.data[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.errorf("invalid UTF-8")
			}
			out = append(out, p.data[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
	return "", p.errorf("unterminated string")
}

func (p *parser) escape() (rune, error) {
	p.pos++
	c := p.at()
	if c == 'u' {
		return p.unicodeEscape()
	}
	plain := map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
	r, ok := plain[c]
	if !ok {
		return 0, p.errorf("unknown escape")
	}
	p.pos++
	return r, nil
}

func (p *parser) unicodeEscape() (rune, error) {
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if !p.take('\\') || p.at() != 'u' {
		return 0, p.errorf("lone surrogate")
	}
	low, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, p.errorf("lone surrogate")
	}
	return r, nil
}

// hex4 reads the u at the current position and the four digits after it.
func (p *parser) hex4() (rune, error) {
	p.pos++
	var r rune
	for range 4 {
		c := p.at()
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.errorf("no hex digit in a \\u escape")
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r, nil
}
