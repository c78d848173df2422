package engine

import (
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// parts bounds the elements of texts that an expression splits. Together they
// are as long as the text, which CEL's estimate of one element cannot say: it is
// made twice, for as many elements as the text has characters and for one that is
// the whole text. What an expression does with elements of any other lengths
// costs at most the sum of both.
type parts struct {
	// of maps expressions that are one element to the text, both by id; size is
	// the greatest length of each text, known once it has been estimated.
	of   map[int64]int64
	size map[int64]uint64
	// whole assumes one element. charged assumes none, because what is done with
	// each is charged while it runs.
	whole, charged bool
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

// variable notes where e reads the variable called name.
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
	switch {
	case p.charged:
		n = 0
	case p.whole:
		n = 1
	}
	return &checker.CallEstimate{
		CostEstimate: checker.CostEstimate{Min: 1, Max: plusOne(size / 10)},
		ResultSize:   &checker.SizeEstimate{Max: n},
	}
}

// cost estimates what an expression costs at most, with or without the calls
// that charge for themselves.
func (s *scope) cost(checked *cel.Ast, patterns bool) (uint64, error) {
	p := partsOf(checked)
	p.charged = s.charged
	once := func() (uint64, error) {
		var estimator checker.CostEstimator = sizes{p}
		if !patterns {
			estimator = apartFromPatterns{sizes{p}}
		}
		cost, err := s.cel.EstimateCost(checked, estimator)
		return cost.Max, err
	}
	many, err := once()
	if err != nil || len(p.of) == 0 || p.charged {
		return many, err
	}
	p.whole = true
	one, err := once()
	if many > math.MaxUint64-one {
		return math.MaxUint64, err
	}
	return many + one, err
}
