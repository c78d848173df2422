package condition

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Review is what a condition says that its author may not mean.
type Review struct {
	// ExceptsResource is set where a condition in CEL holds because a comparison with
	// the resource does not.
	ExceptsResource bool
	// Unguarded are the metadata keys that a condition in CEL reads without ever asking
	// whether they are there, sorted.
	Unguarded []string
	// Dodges are the metadata keys without which a comparison of a match object or a
	// tree that makes it true is false, but those that it also asks the existence of,
	// sorted.
	Dodges []string
}

// ReviewOf returns the review of a condition that compiles.
func ReviewOf(doc string) (r Review) {
	root, err := decode(doc)
	if err != nil {
		return r
	}
	if source, ok := root.member("cel"); ok {
		l, err := cels()
		if err != nil {
			return r
		}
		checked, err := l.check(source.text)
		if err != nil {
			return r
		}
		expr := checked.NativeRep().Expr()
		return Review{ExceptsResource: exceptsResource(expr, false), Unguarded: unguarded(expr)}
	}
	if tree, _, err := parse(root, true); err == nil {
		r.Dodges = dodges(tree)
	}
	return r
}

// dodges returns the metadata keys without which a comparison in tree that makes it
// true is false, but those that the tree also asks the existence of.
func dodges(tree *Node) []string {
	reads, asks := map[string]bool{}, map[string]bool{}
	var visit func(n *Node, negated bool)
	visit = func(n *Node, negated bool) {
		switch {
		case n.Kind == Leaf && n.Op == Exists:
			asks[n.Field.Key] = true
		case n.Kind == Leaf && n.Field.isMetadata() && !negated:
			reads[n.Field.Key] = true
		case n.Kind != Leaf:
			for _, k := range n.Kids {
				visit(k, negated != (n.Kind == Not))
			}
		}
	}
	visit(tree, false)
	return without(reads, asks)
}

// unguarded returns the metadata keys that expr reads without ever asking whether
// they are there.
func unguarded(expr ast.Expr) []string {
	reads, asks := map[string]bool{}, map[string]bool{}
	ast.PostOrderVisit(expr, ast.NewExprVisitor(func(e ast.Expr) {
		if f, ok := fieldOf(e); ok && f.isMetadata() {
			reads[f.Key] = true
		}
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.In {
			return
		}
		key, ok := textLiteral(e.AsCall().Args()[0])
		if ok && isIdent(e.AsCall().Args()[1], fields[Metadata].path) {
			asks[key] = true
		}
	}))
	return without(reads, asks)
}

// without returns the keys of reads that are not in asks, sorted.
func without(reads, asks map[string]bool) []string {
	var keys []string
	for key := range reads {
		if !asks[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// exceptsResource reports whether e, or its opposite where it is negated, can be
// true because a comparison with the resource is false. What a macro makes of the
// resource is not followed.
func exceptsResource(e ast.Expr, negated bool) bool {
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		return exceptsResource(c.LoopStep(), negated) || exceptsResource(c.Result(), negated)
	}
	if e.Kind() != ast.CallKind {
		return false
	}
	args := e.AsCall().Args()
	some := func(negated bool) bool {
		return slices.ContainsFunc(args, func(a ast.Expr) bool { return exceptsResource(a, negated) })
	}
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.NotStrictlyFalse:
		return some(negated)
	case operators.LogicalNot:
		return some(!negated)
	case operators.Conditional:
		return some(negated) || exceptsResource(args[0], !negated)
	case operators.NotEquals:
		return !negated && mentions(e, fields[Resource].path)
	}
	return negated && mentions(e, fields[Resource].path)
}
