package condition

import (
	"math"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
)

// splits bounds the cost of expressions that split a text and read its elements. All elements
// together are at most as long as the text, but CEL bounds only one element. So the cost is
// estimated twice. The first estimate assumes as many elements as the text has characters. The
// second assumes one element that is the whole text. Elements of other lengths cost at most the sum
// of both estimates.
type splits struct {
	// of maps the id of an expression to the id of the split text, if the expression is one
	// element. size maps the id of a text to its greatest length, once that length has been
	// estimated.
	of    map[int64]int64
	size  map[int64]uint64
	whole bool // says that the estimate assumes one element
	// nested says that an element that is the whole text may itself be split into many. Estimates of
	// the load assume that, the limit for conditions does not.
	nested bool
}

// splitsOf returns the splits of an expression.
func splitsOf(checked *cel.Ast) *splits {
	p := &splits{of: map[int64]int64{}, size: map[int64]uint64{}}
	for e := range parts(checked.NativeRep().Expr()) {
		if e.Kind() == ast.ComprehensionKind {
			c := e.AsComprehension()
			if text, ok := splitText(c.IterRange()); ok && !c.HasIterVar2() {
				p.variable(c.LoopCondition(), c.IterVar(), text)
				p.variable(c.LoopStep(), c.IterVar(), text)
			}
		} else if name, args := operandsOf(e); name == operators.Index {
			if text, ok := splitText(args[0]); ok {
				p.of[e.ID()] = text
			}
		}
	}
	return p
}

// splitText returns the id of the text that e splits.
func splitText(e ast.Expr) (int64, bool) {
	if name, args := operandsOf(e); name == fnSplit || name == fnItems {
		return args[0].ID(), true
	}
	return 0, false
}

// variable records each place where e reads the variable called name, which is an element of text.
func (p *splits) variable(e ast.Expr, name string, text int64) {
	for e := range parts(e) {
		if e.Kind() == ast.ComprehensionKind && e.AsComprehension().IterVar() == name {
			return // another variable hides it
		}
	}
	for e := range parts(e) {
		if isIdent(e, name) {
			p.of[e.ID()] = text
		}
	}
}

// element returns a bound of the length of e if e is an element of a split text.
func (p *splits) element(e ast.Expr) *checker.SizeEstimate {
	if p == nil || e == nil {
		return nil
	}
	text, ok := p.of[e.ID()]
	size, known := p.size[text]
	switch {
	case !ok || !known:
		return nil
	case !p.whole && e.Kind() == ast.IdentKind:
		size = 1
	}
	return upTo(size)
}

// split estimates a call that splits text.
func (p *splits) split(text checker.AstNode) *checker.CallEstimate {
	size := textSize(text)
	p.size[text.Expr().ID()] = size
	n := plusOne(size)
	if _, isElement := p.of[text.Expr().ID()]; p.whole && (!p.nested || !isElement) {
		n = 1
	}
	return callUpTo(plusOne(size/10), upTo(n))
}

// cost estimates the greatest cost of an expression. If patterns is set, the estimate includes
// calls of functions that charge their own work.
func (s *language) cost(checked *cel.Ast, patterns bool) (uint64, error) {
	p := splitsOf(checked)
	p.nested = !patterns
	once := func() (uint64, error) {
		cost, err := s.cel.EstimateCost(checked, sizes{p, patterns})
		return cost.Max, err
	}
	many, err := once()
	if err != nil || len(p.of) == 0 {
		return many, err
	}
	p.whole = true
	one, err := once()
	if many > math.MaxUint64-one {
		return math.MaxUint64, err
	}
	return many + one, err
}

// textCall estimates the cost and the result of a function of CEL's strings extension. It returns
// nil for any other function. CEL itself counts each of these functions as one unit, which is too
// little. replace can square the length of a text, and indexOf compares two texts at every place.
// If the length of a result cannot be bounded, the estimate is above the limit for conditions.
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
		return callUpTo(plusOne(compared/1000), nil)
	default:
		return nil
	}
	return callUpTo(plusOne(size/10), upTo(size))
}

// textSize returns the greatest length of a text. If the length is unknown, it returns the
// greatest integer.
func textSize(n checker.AstNode) uint64 {
	if s := n.ComputedSize(); s != nil && n.Type().Kind() == types.StringKind {
		return s.Max
	}
	if s := (sizes{}).EstimateSize(n); s != nil {
		return s.Max
	}
	return math.MaxUint64
}

func upTo(size uint64) *checker.SizeEstimate { return &checker.SizeEstimate{Max: size} }

// callUpTo returns an estimate with the greatest cost and the size of the result.
func callUpTo(cost uint64, result *checker.SizeEstimate) *checker.CallEstimate {
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: cost}, ResultSize: result}
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

// sizes gives CEL the greatest sizes of fields, to estimate an expression's cost. If patterns is
// not set, calls that charge their own work cost nothing.
type sizes struct {
	splits   *splits
	patterns bool
}

// EstimateSize implements [checker.CostEstimator].
func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if size := s.splits.element(node.Expr()); size != nil {
		return size
	}
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	f, ok := fieldByPath(path[0])
	switch {
	case f.ID == Metadata && ok && len(path) > 1 && path[1] == "@keys":
		return upTo(MaxName)
	case f.ID == Metadata && ok && len(path) > 1:
		return upTo(MaxText)
	case strings.HasPrefix(path[0], presenceOfField), ok && f.Kind == Time:
		return upTo(1)
	case ok:
		return upTo(f.row().size)
	}
	return nil
}

// EstimateCallCost implements [checker.CostEstimator].
func (s sizes) EstimateCallCost(
	function, _ string, target *checker.AstNode, args []checker.AstNode,
) *checker.CallEstimate {
	switch {
	case !s.patterns && (function == overloads.Matches || takesPatterns(function)):
		return callUpTo(1, nil)
	case !s.patterns:
		if load := textLoad(function, target, args); load != nil {
			return load
		}
	}
	switch {
	case function == fnSplit && target != nil:
		return s.splitting(*target)
	case function == fnItems && len(args) == 1:
		return s.splitting(args[0])
	}
	if !takesPatterns(function) || len(args) != 2 {
		return textCall(function, target, args)
	}
	patterns, subject := uint64(1), uint64(MaxText)
	if s := args[1].ComputedSize(); s != nil && args[1].Type().Kind() == types.StringKind {
		subject = s.Max
	}
	if s := args[0].ComputedSize(); s != nil && args[0].Type().Kind() == types.ListKind {
		patterns = s.Max
	}
	return callUpTo(1+patterns*(1+subject/10), nil)
}

// splitting estimates a call that splits text. The load includes the list that the call makes.
func (s sizes) splitting(text checker.AstNode) *checker.CallEstimate {
	c := s.splits.split(text)
	if !s.patterns {
		c.Max += (copiedSteps*min(textSize(text), math.MaxInt32) + resultSteps) / unitSteps
	}
	return c
}

// unitSteps is the number of steps that one cost unit takes. CEL interprets the unit and boxes each
// value that the unit reads.
const unitSteps = 12

// searchedPerStep is the number of bytes of a text that functions search or count in a step.
const searchedPerStep = 8

// copiedSteps is the number of steps for a byte of a text that a function copies into a list of
// characters.
const copiedSteps = 2

// quotedSteps is the number of steps for a byte of a text that an error quotes.
const quotedSteps = 3

// resultSteps is the number of steps for the result that a function makes: a text, a list, or the error of
// a failed conversion.
const resultSteps = 96

// textLoad estimates the load of functions that take time linear in their texts, for which CEL counts
// one unit. It returns nil for other functions.
func textLoad(function string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	size := uint64(0) // a text without a known size is above the limit for conditions
	if target != nil {
		args = append([]checker.AstNode{*target}, args...)
	}
	for _, n := range args {
		if n.Type().Kind() == types.StringKind {
			size = max(size, min(textSize(n), math.MaxInt32))
		}
	}
	var result *checker.SizeEstimate
	switch function {
	case overloads.Contains, overloads.Size:
		size /= searchedPerStep
	case overloads.TypeConvertInt, overloads.TypeConvertUint, overloads.TypeConvertDouble, overloads.TypeConvertBool:
		size = size/2 + resultSteps
	case overloads.TypeConvertTimestamp, overloads.TypeConvertDuration:
		size = quotedSteps*size + resultSteps
	case "indexOf", "lastIndexOf":
		if len(args) > 1 { // it compares two texts at every place
			size += times(plusOne(textSize(args[0])), plusOne(textSize(args[1]))) / searchedPerStep
		}
	case "lowerAscii", "upperAscii", "trim", "reverse", "substring":
		result = upTo(size)
		size = copiedSteps*size + resultSteps
	case "charAt":
		size += resultSteps
	default:
		return nil
	}
	return callUpTo(plusOne(size/unitSteps), result)
}
