package reference

import (
	"errors"
	"slices"
	"strings"
	"unicode"
)

type token struct {
	kind   rune // '*', '+' for **, '?', or '[' for a class
	not    bool
	lo, hi rune
	set    []rune
}

// doubleStar and anyOne are the elements for ** and ?. Only these two wildcards end a host and may
// begin a query.
const (
	doubleStar rune = 1 << 20
	anyOne     rune = 1 << 21
)

// maxAlternatives bounds the alternatives that the braces of a pattern expand to.
const maxAlternatives = 4096

var errGlob = errors.New("the pattern does not compile")

// parseGlob parses a pattern into its alternatives. A wildcard in an alternative is an index into
// tokens.
func parseGlob(pattern string) (alternatives []text, tokens []token, err error) {
	return parse(&globParser{in: []rune(pattern), letters: backslashSeparates(pattern), addresses: true})
}

// parseOPA parses a pattern as OPA's glob.match does. In OPA every bracket begins a class, and
// every backslash escapes.
func parseOPA(pattern string) (alternatives []text, tokens []token, err error) {
	return parse(&globParser{in: []rune(pattern)})
}

func parse(p *globParser) (alternatives []text, tokens []token, err error) {
	alternatives, err = p.sequence(0)
	if err == nil && p.at < len(p.in) {
		err = errGlob
	}
	return alternatives, p.tokens, err
}

// backslashSeparates reports whether every backslash of a pattern is a separator. The pattern then
// starts with a drive or two backslashes, or has a backslash before a letter or a digit.
func backslashSeparates(pattern string) bool {
	r := []rune(pattern)
	if isDrive(r) || strings.HasPrefix(pattern, `\\`) {
		return true
	}
	for i, c := range r[:max(0, len(r)-1)] {
		if c == '\\' && (unicode.IsLetter(r[i+1]) || unicode.IsDigit(r[i+1])) {
			return true
		}
	}
	return false
}

// isDrive reports whether t starts with a drive letter, a colon, and a slash or backslash.
func isDrive(t text) bool {
	return len(t) > 2 && isASCIILetter(t[0]) && t[1] == ':' && (t[2] == '/' || t[2] == '\\')
}

func isASCIILetter(r rune) bool { return r|0x20 >= 'a' && r|0x20 <= 'z' }

type globParser struct {
	in        []rune
	at        int
	letters   bool // backslashes do not escape
	addresses bool // brackets right after // brackets right after // enclose an address
	tokens    []token
}

// wildcard appends t to p's tokens and returns the element for t.
func (p *globParser) wildcard(t token) text {
	p.tokens = append(p.tokens, t)
	r := wild | rune(len(p.tokens)-1)
	switch t.kind {
	case '+':
		r |= doubleStar
	case '?':
		r |= anyOne
	}
	return text{r}
}

// sequence parses up to the end of the pattern. Within braces, it stops at a comma or a closing
// brace.
func (p *globParser) sequence(depth int) ([]text, error) {
	out := []text{nil}
	add := func(parts ...text) error {
		var next []text
		for _, o := range out {
			for _, part := range parts {
				next = append(next, concat(o, part))
			}
		}
		out = next
		if len(out) > maxAlternatives {
			return errGlob
		}
		return nil
	}
	for p.at < len(p.in) {
		r := p.in[p.at]
		var parts []text
		var err error
		switch {
		case depth > 0 && (r == ',' || r == '}'):
			return out, nil
		case r == '*':
			kind := '*'
			if p.at+1 < len(p.in) && p.in[p.at+1] == '*' {
				kind = '+'
				p.at++
			}
			p.at++
			parts = []text{p.wildcard(token{kind: kind})}
		case r == '?':
			p.at++
			parts = []text{p.wildcard(token{kind: '?'})}
		case r == '[' && p.addresses && p.at >= 2 && p.in[p.at-1] == '/' && p.in[p.at-2] == '/':
			end := slices.Index(p.in[p.at:], ']')
			if end < 0 {
				return nil, errGlob
			}
			parts = []text{slices.Clone(p.in[p.at : p.at+end+1])}
			p.at += end + 1
		case r == '[':
			parts, err = p.class()
		case r == '{':
			parts, err = p.braces(depth)
		case r == '\\' && !p.letters:
			if p.at+1 == len(p.in) {
				return nil, errGlob
			}
			parts = []text{{p.in[p.at+1]}}
			p.at += 2
		default:
			p.at++
			parts = []text{{r}}
		}
		if err == nil {
			err = add(parts...)
		}
		if err != nil {
			return nil, err
		}
	}
	if depth > 0 {
		return nil, errGlob
	}
	return out, nil
}

func (p *globParser) braces(depth int) ([]text, error) {
	var out []text
	for {
		p.at++ // skip the opening brace or a comma
		alternatives, err := p.sequence(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, alternatives...)
		if p.in[p.at] == '}' {
			p.at++
			return out, nil
		}
	}
}

// class parses [abc], [a-z] and their negations, as OPA's glob.match does.
func (p *globParser) class() ([]text, error) {
	end := p.at + 1
	var body []rune
	for ; end < len(p.in) && p.in[end] != ']'; end++ {
		if p.in[end] == '\\' && !p.letters {
			end++
		}
		if end < len(p.in) {
			body = append(body, p.in[end])
		}
	}
	if end >= len(p.in) {
		return nil, errGlob
	}
	p.at = end + 1
	t := token{kind: '['}
	if len(body) > 0 && body[0] == '!' {
		t.not, body = true, body[1:]
	}
	switch {
	case len(body) == 0:
		return nil, errGlob
	case len(body) > 1 && body[1] == '-':
		if len(body) != 3 || body[2] < body[0] {
			return nil, errGlob
		}
		t.lo, t.hi = body[0], body[2]
	default:
		t.set = body
	}
	return []text{p.wildcard(t)}, nil
}

type matching struct {
	fold bool            // classes ignore case
	stop func(rune) bool // characters at which * ends, as well as at a slash
}

// match reports whether the pattern matches the whole of t.
func match(pattern text, tokens []token, t text, m matching) bool {
	type position struct{ p, t int }
	seen := map[position]bool{} // positions from which no match exists
	var at func(p, i int) bool
	at = func(p, i int) bool {
		pos := position{p, i}
		if seen[pos] {
			return false
		}
		var ok bool
		switch {
		case p == len(pattern):
			ok = i == len(t)
		case !isWild(pattern[p]):
			ok = i < len(t) && pattern[p] == t[i] && at(p+1, i+1)
		default:
			tok := tokens[pattern[p]&^(wild|doubleStar|anyOne)]
			if tok.kind == '*' || tok.kind == '+' {
				ok = at(p+1, i) || i < len(t) && tok.takes(t[i], m) && at(p, i+1)
			} else {
				ok = i < len(t) && tok.takes(t[i], m) && at(p+1, i+1)
			}
		}
		if !ok {
			seen[pos] = true
		}
		return ok
	}
	return at(0, 0)
}

// takes reports whether the wildcard matches r.
func (tok token) takes(r rune, m matching) bool {
	switch tok.kind {
	case '+':
		return true
	case '?':
		return r != '/'
	case '*':
		return r != '/' && (m.stop == nil || !m.stop(r&^escaped))
	}
	r &^= escaped
	in := tok.has(r)
	if m.fold {
		in = in || tok.has(unicode.ToLower(r)) || tok.has(unicode.ToUpper(r))
	}
	return in != tok.not
}

func (tok token) has(r rune) bool {
	if tok.set != nil {
		return slices.Contains(tok.set, r)
	}
	return r >= tok.lo && r <= tok.hi
}
