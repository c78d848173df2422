package scrub

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

type ruleSet [4]uint64

func (s *ruleSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *ruleSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s *ruleSet) empty() bool    { return s[0]|s[1]|s[2]|s[3] == 0 }

func (s *ruleSet) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s *ruleSet) join(t *ruleSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

func (s *ruleSet) remove(t *ruleSet) {
	for i := range s {
		s[i] &^= t[i]
	}
}

// hits is the result of one pass over a text.
type hits struct {
	rules   ruleSet // the rules that could match the text
	escaped bool    // the text has a byte that can begin an escape
	encoded bool    // the text is long enough in a row to be base64 or hexadecimal
}

func (h *hits) any() bool { return h.escaped || h.encoded || !h.rules.empty() }

// prefilter finds in one pass over a text the rules that could match.
type prefilter struct {
	automaton  automaton
	contextual ruleSet // the rules that want a keyword, an operator and a value
	card       int     // the index of the rule of card numbers, which has no keyword
	digits     int     // the number of digits in a row that the rule of card numbers needs
	demands    [][]demand
}

func newPrefilter(rules []*rule) prefilter {
	if len(rules) > 64*len(ruleSet{}) {
		panic("scrub: more rules than a ruleSet holds")
	}
	var p prefilter
	for i, r := range rules {
		p.demands = append(p.demands, r.demands)
		if r.contextual {
			p.contextual.add(i)
		}
		if r.digits > 0 {
			p.card, p.digits = i, r.digits
		}
	}
	p.automaton = newAutomaton(rules)
	return p
}

// The marks of bytes that the pass treats specially.
const (
	isRun = 1 << iota // isWord
	isDigit
	isDash
	isSpace    // or the + of a form
	isOperator // = > : | ? ,
	isEscape   // % \ &
	isWide     // beyond ASCII
)

// marks has the marks of each byte.
var marks = func() (m [256]uint8) {
	for b := range m {
		if isWord(rune(b)) {
			m[b] = isRun
		}
		if b >= utf8.RuneSelf {
			m[b] = isRun | isWide
		}
	}
	for b := '0'; b <= '9'; b++ {
		m[b] = isRun | isDigit
	}
	for _, b := range "=>:|?," {
		m[b] = isOperator
	}
	m['-'], m[' '], m['+'] = isDash, isSpace, isSpace
	m['%'], m['\\'], m['&'] = isEscape, isEscape, isEscape
	return m
}()

// pass is the state of a pass over a text.
type pass struct {
	state    uint16
	keywords ruleSet // the rules with a keyword that was seen
	open     bool    // a contextual rule is among them
	context  bool    // an operator came after a keyword of such a rule
	escaped  bool
	run      int // length of the current run of word characters
	dashed   int // length of the current run of word characters and dashes
	digits   int // number of digits in a row, with single spaces and dashes between them
	longest  demand
	most     int // the greatest value that digits had
}

// scan makes one pass over text.
func (p *prefilter) scan(text string) (h hits) {
	var ps pass
	p.read(&ps, text, 0)
	p.conclude(&ps, &h, len(text))
	h.encoded = ps.longest.run >= base64Digits.least
	return h
}

// scanPair is scan of `key = "value"`. It does not look for encoded parts, because
// separate scans of key and of value find them.
func (p *prefilter) scanPair(key, value string) (h hits) {
	var ps pass
	const assign, quote = ` = "`, `"`
	p.read(&ps, key, len(assign)+len(value)+len(quote))
	p.read(&ps, assign, len(value)+len(quote))
	p.read(&ps, value, len(quote))
	p.read(&ps, quote, 0)
	p.conclude(&ps, &h, len(key)+len(assign)+len(value)+len(quote))
	return h
}

// read continues ps with text; more is the number of bytes that follow it. It works on
// copies that the processor can keep in registers.
func (p *prefilter) read(ps *pass, text string, more int) {
	state, run, dashed, digits := ps.state, ps.run, ps.dashed, ps.digits
	longest, most := ps.longest, ps.most
	next, class, out := p.automaton.next, &p.automaton.class, p.automaton.out
	for i := 0; i < len(text); i++ {
		b := text[i]
		state = next[state][class[b]%(1<<classBits)]
		if set := out[state]; set != 0 {
			ps.keywords.join(&p.automaton.sets[set])
			ps.open = ps.open || p.automaton.opens[set]
		}
		switch m := marks[b]; m {
		case isRun:
			run++
			dashed++
			digits = 0
		case isRun | isDigit:
			run++
			dashed++
			digits++
			most = max(most, digits)
		case isRun | isWide:
			run++
			dashed++
			digits = 0
			ps.escaped = true
		case isDash:
			longest.run = max(longest.run, run)
			run = 0
			dashed++
		default:
			longest.run, longest.dashed = max(longest.run, run), max(longest.dashed, dashed)
			run, dashed = 0, 0
			if m == isSpace {
				continue
			}
			digits = 0
			if m != 0 {
				ps.mark(m, text[i+1:], more)
			}
		}
	}
	longest.run, longest.dashed = max(longest.run, run), max(longest.dashed, dashed)
	ps.state, ps.run, ps.dashed, ps.digits = state, run, dashed, digits
	ps.longest, ps.most = longest, most
}

// mark records an escape or operator byte. left is the rest of the text. more is how many
// bytes follow that. The colon of :// is not an operator.
func (ps *pass) mark(m uint8, left string, more int) {
	if m == isEscape {
		ps.escaped = true
		return
	}
	if ps.open && len(left)+more >= minSecret && !strings.HasPrefix(left, "//") {
		ps.context = true
	}
}

// conclude sets the rules of h: those whose keywords were seen and whose demands a text
// of length bytes meets.
func (p *prefilter) conclude(ps *pass, h *hits, length int) {
	h.escaped = ps.escaped
	h.rules = ps.keywords
	if !ps.context {
		h.rules.remove(&p.contextual)
	}
	text := ps.longest
	text.length = length
	for word, set := range h.rules {
		for ; set != 0; set &= set - 1 {
			bit := bits.TrailingZeros64(set)
			if !anyMet(p.demands[word*64+bit], text) {
				h.rules[word] &^= 1 << bit
			}
		}
	}
	if ps.most >= p.digits {
		h.rules.add(p.card)
	}
}

func anyMet(demands []demand, text demand) bool {
	for _, d := range demands {
		if d.meets(text) {
			return true
		}
	}
	return false
}
