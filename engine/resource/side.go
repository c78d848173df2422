package resource

// Side is what a match of a resource is for. A block holds where one of the readings that
// it looks at matches, an allowance where all that it has to cover match to each of their
// readers. The zero Side is neither: nothing is compiled for it, and what is asked for it
// is an error.
type Side uint8

// The two sides.
const (
	ForBlock Side = iota + 1
	ForAllow
)

// Opposite returns the side of what is negated.
func (s Side) Opposite() Side {
	switch s {
	case ForBlock:
		return ForAllow
	case ForAllow:
		return ForBlock
	}
	return 0
}

// errNoSide refuses a pattern that is for neither side.
var errNoSide = &Error{"it is neither for a block nor for an allowance"}
