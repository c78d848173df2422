package engine

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
)

// textCall estimates what a function of CEL's strings extension costs and makes,
// nil for any other. CEL itself takes each of them for one unit, but
// replace writes a text into another as often as it finds a third, which squares
// its length, and indexOf compares two of them at every place. The functions whose result cannot be bounded cost more than any
// condition may.
func textCall(function string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	var size uint64
	switch {
	case function == "join" || function == "format":
		size = math.MaxUint64
	case target == nil:
		return nil
	case function == "replace" && len(args) >= 2:
		size = times(plusOne(textSize(*target)), plusOne(textSize(args[1])))
	case function == "lowerAscii" || function == "upperAscii" || function == "trim" ||
		function == "reverse" || function == "substring":
		size = textSize(*target)
	case (function == "indexOf" || function == "lastIndexOf") && len(args) > 0:
		compared := times(plusOne(textSize(*target)), plusOne(textSize(args[0])))
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: plusOne(compared / 1000)}}
	default:
		return nil
	}
	return &checker.CallEstimate{
		CostEstimate: checker.CostEstimate{Min: 1, Max: plusOne(size / 10)},
		ResultSize:   &checker.SizeEstimate{Max: size},
	}
}

// textSize returns the greatest length of a text, which is unbounded where it is
// not known.
func textSize(n checker.AstNode) uint64 {
	if s := n.ComputedSize(); s != nil && n.Type().Kind() == types.StringKind {
		return s.Max
	}
	if s := (sizes{}).EstimateSize(n); s != nil {
		return s.Max
	}
	return math.MaxUint64
}

func plusOne(n uint64) uint64 {
	if n == math.MaxUint64 {
		return n
	}
	return n + 1
}

func times(a, b uint64) uint64 {
	if a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}
