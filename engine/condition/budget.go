package condition

import (
	"fmt"

	"writ.example/writ/engine/resource"
)

// budget adds up the compiled sizes of one condition's patterns, and refuses a condition whose
// patterns are too large.
type budget struct {
	instructions int
	spellings    int
	// bytes is the approximate size of the compiled patterns in memory.
	bytes int
}

// instructionBytes is the approximate size of one instruction of a regular expression.
const instructionBytes = 64

// regexp adds an RE2 expression. times is the greatest number of times that the expression is run.
func (b *budget) regexp(expr string, times int) error {
	n, err := Instructions(expr)
	if err != nil {
		return err
	}
	b.bytes += instructionBytes * n
	if b.instructions += times * n; b.instructions > MaxInstructions {
		return fmt.Errorf("the regular expressions compile to more than %d instructions", MaxInstructions)
	}
	return nil
}

// glob adds a pattern of op. op must take patterns. Compiling takes long, so glob compiles nothing
// more after the limit of spellings is exceeded.
func (b *budget) glob(op Operator, pattern string) error {
	if b.spellings <= MaxEntries {
		m, err := compileMatcher(op, []string{pattern}, resource.ForBlock)
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
	if b.spellings > MaxEntries {
		return fmt.Errorf("the globs stand for more than %d alternatives", MaxEntries)
	}
	return nil
}
