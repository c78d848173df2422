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

// parts bounds the elements of texts that an expression splits. Together they are as long as
// the text, but CEL only bounds one element. So the cost is estimated twice: for as many
// elements as the text has characters, and for one element that is the whole text. Elements of
// other lengths cost at most the sum of both.
type parts struct {
	// of maps expressions that are one element to the text, both by id. size is the greatest
	// length of each text, known once it has been estimated.
	of    map[int64]int64
	size  map[int64]uint64
	whole bool // assumes one element
}

// partsOf returns the parts of an expression, nil where it splits no text.
func partsOf(checked *cel.Ast) *parts {
	p := &parts{of: map[int64]int64{}, size: map[int64]uint64{}}
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.ComprehensionKind:
			c := e.AsComprehension()
			if text, ok := splitText(c.IterRange()); ok && !c.HasIterVar2() {
				p.variable(c.LoopCondition(), c.IterVar(), text)
				p.variable(c.LoopStep(), c.IterVar(), text)
			}
		case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
			if text, ok := splitText(e.AsCall().Args()[0]); ok {
				p.of[e.ID()] = text
			}
		}
	}))
	return p
}

// splitText returns the id of the text whose parts e is.
func splitText(e ast.Expr) (int64, bool) {
	if e.Kind() != ast.CallKind {
		return 0, false
	}
	switch call := e.AsCall(); call.FunctionName() {
	case fnSplit:
		return call.Target().ID(), true
	case fnItems:
		return call.Args()[0].ID(), true
	}
	return 0, false
}

// variable records where e reads the variable called name.
func (p *parts) variable(e ast.Expr, name string, text int64) {
	shadowed := false
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		shadowed = shadowed || e.Kind() == ast.ComprehensionKind && e.AsComprehension().IterVar() == name
	}))
	if shadowed {
		return
	}
	ast.PostOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if isIdent(e, name) {
			p.of[e.ID()] = text
		}
	}))
}

// element bounds the length of an element that e is.
func (p *parts) element(e ast.Expr) *checker.SizeEstimate {
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
	return &checker.SizeEstimate{Max: size}
}

// split estimates a call that splits text.
func (p *parts) split(text checker.AstNode) *checker.CallEstimate {
	size := textSize(text)
	p.size[text.Expr().ID()] = size
	n := plusOne(size)
	if p.whole {
		n = 1
	}
	return &checker.CallEstimate{
		CostEstimate: checker.CostEstimate{Min: 1, Max: plusOne(size / 10)},
		ResultSize:   &checker.SizeEstimate{Max: n},
	}
}

// cost estimates the greatest cost of an expression. Calls that charge for themselves count
// where patterns is set.
func (s *language) cost(checked *cel.Ast, patterns bool) (uint64, error) {
	p := partsOf(checked)
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

// textCall estimates the cost and the result of a function of CEL's strings extension. It is
// nil for any other function. CEL itself takes each of them for one unit. But replace can
// square the length of a text, and indexOf compares two texts at every place. A function whose
// result cannot be bounded costs more than any condition may.
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

// textSize returns the greatest length of a text. It is unbounded where it is unknown.
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

// sizes bounds the fields for the estimate of an expression's cost. Without patterns, calls
// that charge for themselves cost nothing.
type sizes struct {
	parts    *parts
	patterns bool
}

// EstimateSize implements [checker.CostEstimator].
func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if size := s.parts.element(node.Expr()); size != nil {
		return size
	}
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	if path[0] == fields[Metadata].path && len(path) > 1 {
		size := uint64(MaxText)
		if path[1] == "@keys" {
			size = MaxName
		}
		return &checker.SizeEstimate{Max: size}
	}
	if f, ok := fieldByPath(path[0]); ok {
		if f.Kind == Time {
			return &checker.SizeEstimate{Max: 1}
		}
		return &checker.SizeEstimate{Max: f.row().size}
	}
	if strings.HasPrefix(path[0], presenceOfField) {
		return &checker.SizeEstimate{Max: 1}
	}
	return nil
}

// EstimateCallCost implements [checker.CostEstimator].
func (s sizes) EstimateCallCost(
	function, _ string, target *checker.AstNode, args []checker.AstNode,
) *checker.CallEstimate {
	switch {
	case !s.patterns && (function == overloads.Matches || takesPatterns(function)):
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1}}
	case function == fnSplit && target != nil:
		return s.parts.split(*target)
	case function == fnItems && len(args) == 1:
		return s.parts.split(args[0])
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
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + patterns*(1+subject/10)}}
}

// macroSteps is how many steps a cost unit takes that a macro repeats: CEL
// interprets it, and boxes what it looks at.
const macroSteps = 4
