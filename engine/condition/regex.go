package condition

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// regex is a regular expression as a list of one pattern.
type regex struct {
	re           *regexp.Regexp
	instructions int
}

func compileRegex(expr string) (*regex, error) {
	n, err := Instructions(expr)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	return &regex{re: re, instructions: n}, err
}

// Instructions returns how many instructions an RE2 expression compiles to.
func Instructions(expr string) (int, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("not an RE2 expression: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, fmt.Errorf("not an RE2 expression: %w", err)
	}
	return len(prog.Inst), nil
}

// Match implements [matcher].
func (r *regex) Match(s string) int {
	if r.re.MatchString(s) {
		return 0
	}
	return -1
}

// Steps implements [matcher].
func (r *regex) Steps(s string) int { return r.instructions * (len(s) + 1) }

// interruptible is from how many steps on a match offers its turn: some 2 ms. For
// so many, regexp simulates the automaton whether it reads a text or a reader.
const interruptible = 1 << 18

// matches is Match, which has been charged to w, and offers w's turn.
func (r *regex) matches(w *Work, s string) bool {
	if w.turn == nil || r.Steps(s) < interruptible {
		return r.re.MatchString(s)
	}
	return r.re.MatchReader(&offering{Reader: strings.NewReader(s), work: w, every: max(1, yieldEvery/r.instructions)})
}

// offering reads a text and offers the turn after every so many characters.
type offering struct {
	*strings.Reader
	work        *Work
	every, read int
}

// ReadRune implements [io.RuneReader].
func (o *offering) ReadRune() (r rune, size int, err error) {
	if o.read++; o.read%o.every == 0 {
		o.work.offer()
	}
	return o.Reader.ReadRune()
}
