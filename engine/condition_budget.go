package engine

import (
	"fmt"
	"regexp/syntax"

	"writ/engine/glob"
)

// budget adds up what the patterns of one condition compile to, and refuses
// more than a condition may have.
type budget struct {
	instructions int
	spellings    int
	// bytes is about what the compiled patterns take.
	bytes int
}

// instructionBytes is about what one instruction of a regular expression takes.
const instructionBytes = 64

// regexp adds an RE2 expression that is run at most times times.
func (b *budget) regexp(expr string, times int) error {
	n, err := regexInstructions(expr)
	if err != nil {
		return fmt.Errorf("not an RE2 expression: %w", err)
	}
	b.bytes += instructionBytes * n
	if b.instructions += times * n; b.instructions > maxRegexProgram {
		return fmt.Errorf("the regular expressions compile to more than %d instructions", maxRegexProgram)
	}
	return nil
}

// regexInstructions returns how many instructions an RE2 expression compiles to.
func regexInstructions(expr string) (int, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	return len(prog.Inst), nil
}

// glob adds a pattern of one of the functions that take patterns. Once there
// are too many it compiles no more, because compiling is what is dear.
func (b *budget) glob(function, pattern string) error {
	if b.spellings <= maxSpellingsTotal {
		m, err := compileMatcher(function, []string{pattern}, glob.Blocks)
		if err != nil {
			return err
		}
		b.spellings++
		if g, ok := m.(interface {
			Len() int
			Size() int
		}); ok {
			b.spellings += g.Len() - 1
			b.bytes += g.Size()
		}
	}
	if b.spellings > maxSpellingsTotal {
		return fmt.Errorf("the globs stand for more than %d alternatives", maxSpellingsTotal)
	}
	return nil
}
