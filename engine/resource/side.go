package resource

// Side is the side for which a resource is matched: a block or an allowance. A block holds if one
// of its readings matches. An allowance holds if all of its readings match, each for all of its
// readers. The zero Side is invalid: compiling or evaluating for it is an error.
type Side uint8

// The two sides.
const (
	ForBlock Side = iota + 1
	ForAllow
)

// Opposite returns the side of a negated comparison.
func (s Side) Opposite() Side {
	switch s {
	case ForBlock:
		return ForAllow
	case ForAllow:
		return ForBlock
	}
	return 0
}

// errNoSide is the error of a pattern without a side.
var errNoSide = &Error{"it is neither for a block nor for an allowance"}
