package condition

import (
	"fmt"

	"writ/engine/resource"
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

// regexp adds an RE2 expression that is run up to times times.
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

// glob adds a pattern of op, which takes patterns. Compiling takes long, so glob compiles nothing
// more once there are too many spellings.
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
