package condition

import (
	"fmt"

	"writ/engine/resource"
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
	n, err := Instructions(expr)
	if err != nil {
		return err
	}
	b.bytes += instructionBytes * n
	if b.instructions += times * n; b.instructions > MaxEntries {
		return fmt.Errorf("the regular expressions compile to more than %d instructions", MaxEntries)
	}
	return nil
}

// glob adds a pattern of an operator that takes patterns. Once there are too many it
// compiles no more: compiling is what takes long.
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
