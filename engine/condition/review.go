package condition

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Review is what a condition says that its author may not mean. Fields are named as
// match objects name them: "action_type", "metadata.env", or "metadata" where it is not
// known which key is read.
type Review struct {
	// Fields are all that the condition reads or asks the existence of, sorted. What
	// may be absent as a part of the cost is "cost" in Unguarded and Dodges.
	Fields []string
	// ExceptsResource is set where a condition in CEL or Rego holds because a comparison
	// with the resource does not.
	ExceptsResource bool
	// Unguarded are the metadata keys, and the cost, that a condition in CEL reads without
	// ever asking whether they are there, sorted.
	Unguarded []string
	// Dodges are the metadata keys, and the cost, without which the condition does not
	// hold, whatever is behind them, unless it asks for their existence itself, sorted:
	// of a match object, a tree and Rego.
	Dodges []string
	// TextOrder is what in a condition in CEL or Rego is ordered as text and looks like
	// a number, "" where nothing is.
	TextOrder string
	// Misordered says where a condition in Rego orders a metadata value as text that must
	// have been meant as a number. It is nil where none is.
	Misordered error
}

// ReviewOf returns the review of a condition that compiles and is not in Rego.
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
		return reviewCEL(checked.NativeRep().Expr())
	}
	if tree, _, err := parse(root, true); err == nil {
		return reviewTree(tree)
	}
	return r
}

// names are names that a review collects.
type names map[string]bool

// without returns the names that are not in others, sorted.
func (n names) without(others names) []string {
	var kept []string
	for name := range n {
		if !others[name] {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return kept
}

// reviewed is the name of f in a review.
func (f Field) reviewed() string {
	if f.ID == GovernedAgentID { // which is the intent's
		return fields[AgentID].name
	}
	return f.Label()
}

// whole is the name of what may be absent, with f.
func (f Field) whole() string {
	if f.isMetadata() {
		return f.Label()
	}
	return fields[f.row().owner].name
}

func reviewTree(tree *Node) Review {
	all, reads, asks := names{}, names{}, names{}
	var visit func(n *Node, negated bool)
	visit = func(n *Node, negated bool) {
		switch {
		case n.Kind != Leaf:
			for _, k := range n.Kids {
				visit(k, negated != (n.Kind == Not))
			}
			return
		case n.Field.Counter != nil: // which also a cost that is left out dodges, where it adds them up
			if n.Field.Counter.Sum && !negated {
				reads[FieldOf(CostAmount).whole()] = true
			}
			return
		case n.Op == Exists:
			asks[n.Field.whole()] = true
		case n.Field.Optional() && !negated:
			reads[n.Field.whole()] = true
		}
		all[n.Field.reviewed()] = true
	}
	visit(tree, false)
	return Review{Fields: all.without(nil), Dodges: reads.without(asks)}
}

func reviewCEL(expr ast.Expr) Review {
	r := celReviewer{all: names{}, reads: names{}, asks: names{}, keyed: make(map[int64]bool)}
	ast.PostOrderVisit(expr, ast.NewExprVisitor(r.keys))
	ast.PostOrderVisit(expr, ast.NewExprVisitor(r.visit))
	return Review{
		Fields: r.all.without(nil), Unguarded: r.reads.without(r.asks),
		ExceptsResource: exceptsResource(expr, false), TextOrder: r.ordered,
	}
}

type celReviewer struct {
	all, reads, asks names
	// keyed are the mentions of the metadata of which the key is known.
	keyed   map[int64]bool
	ordered string
}

// keys finds the mentions of the metadata of which the key is known.
func (r *celReviewer) keys(e ast.Expr) {
	f, ok := fieldOf(e)
	switch {
	case ok && f.isMetadata() && e.Kind() == ast.SelectKind:
		r.keyed[e.AsSelect().Operand().ID()] = true
	case ok && f.isMetadata() && e.AsCall().FunctionName() == operators.Index:
		r.keyed[e.AsCall().Args()[0].ID()] = true
	case isMembership(e):
		r.keyed[e.AsCall().Args()[1].ID()] = true
	}
}

// isMembership reports whether e asks the metadata for a key that is known.
func isMembership(e ast.Expr) bool {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.In {
		return false
	}
	_, ok := textLiteral(e.AsCall().Args()[0])
	return ok && isIdent(e.AsCall().Args()[1], fields[Metadata].path)
}

func (r *celReviewer) visit(e ast.Expr) {
	r.ordered = cmp.Or(r.ordered, textOrder(e))
	if isMembership(e) {
		key, _ := textLiteral(e.AsCall().Args()[0])
		r.asked(MetadataKey(key))
		return
	}
	if e.Kind() == ast.IdentKind {
		path, presence := strings.CutPrefix(e.AsIdent(), presenceOfField)
		f, ok := fieldByPath(path)
		switch {
		case !ok || r.keyed[e.ID()]:
		case presence:
			r.asked(f)
		default:
			r.read(f)
		}
		return
	}
	if f, ok := fieldOf(e); ok && f.isMetadata() {
		r.read(f)
	}
}

func (r *celReviewer) asked(f Field) {
	r.all[f.reviewed()] = true
	r.asks[f.whole()] = true
}

func (r *celReviewer) read(f Field) {
	r.all[f.reviewed()] = true
	if f.Optional() && f.Kind != Object {
		r.reads[f.whole()] = true
	}
}

// textOrder returns the text that looks like a number and that e orders by, or "".
func textOrder(e ast.Expr) string {
	if e.Kind() != ast.CallKind {
		return ""
	}
	switch e.AsCall().FunctionName() {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		for _, arg := range e.AsCall().Args() {
			if text, ok := textLiteral(arg); ok && LooksLikeNumber(text) {
				return text
			}
		}
	}
	return ""
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
