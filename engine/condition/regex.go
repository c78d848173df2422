package condition

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// regex is a regular expression as a [matcher] with one pattern.
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

// Instructions returns the number of instructions that an RE2 expression compiles to.
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

// interruptible is the number of steps from which a match offers its turn: some 2 ms. For matches
// as long as that, regexp simulates the automaton both for a string and for a reader, so that
// reading costs nothing.
const interruptible = 1 << 18

// matches does the same as Match, and offers w's turn. The caller has already charged the steps to
// w.
func (r *regex) matches(w *Work, s string) bool {
	if w.turn == nil || r.Steps(s) < interruptible {
		return r.re.MatchString(s)
	}
	return r.re.MatchReader(&offering{Reader: strings.NewReader(s), work: w, every: max(1, YieldEvery/r.instructions)})
}

// offering reads a text. It offers the turn after every characters.
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
