package condition

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

func reviewCEL(expr ast.Expr) Review {
	r := celReviewer{all: names{}, reads: names{}, asks: names{}, keyed: make(map[int64]bool)}
	for e := range parts(expr) {
		r.keys(e)
	}
	for e := range parts(expr) {
		r.visit(e)
	}
	return Review{
		Fields: r.all.without(nil), Unguarded: r.reads.without(r.asks),
		ExceptsResource: exceptsResource(expr, false), TextOrder: r.ordered,
		CallerTime: restsOnCallerTime(expr),
	}
}

type celReviewer struct {
	all, reads, asks names
	// keyed has the ids of the expressions that read the metadata by a constant key.
	keyed   map[int64]bool
	ordered string
}

// keys adds the id of the metadata in e to keyed, if e selects a constant key.
func (r *celReviewer) keys(e ast.Expr) {
	f, ok := fieldOf(e)
	_, args := operandsOf(e)
	_, asked := presenceIn(e)
	switch {
	case ok && f.isMetadata() && e.Kind() == ast.SelectKind:
		r.keyed[e.AsSelect().Operand().ID()] = true
	case ok && f.isMetadata():
		r.keyed[args[0].ID()] = true
	case asked && len(args) > 0:
		r.keyed[args[1].ID()] = true
	}
}

func (r *celReviewer) visit(e ast.Expr) {
	ordered, _ := textOrder(e)
	r.ordered = cmp.Or(r.ordered, ordered)
	f, ok := fieldOf(e)
	if asked, isPresence := presenceIn(e); isPresence {
		r.asked(asked)
	} else if e.Kind() == ast.IdentKind {
		if f, ok := fieldByPath(e.AsIdent()); ok && !r.keyed[e.ID()] {
			r.read(f)
		}
	} else if ok && f.isMetadata() {
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

// textOrder returns a text that looks like a number, and the metadata key that e orders by this
// text. The text is empty if e is no such comparison.
func textOrder(e ast.Expr) (text string, key Field) {
	name, args := operandsOf(e)
	if mirrored(name) == "" || mirrored(name) == name {
		return "", key
	}
	for i, arg := range args {
		if s, ok := textLiteral(arg); ok && LooksLikeNumber(s) {
			text = s
			key, _ = fieldOf(args[1-i])
			break
		}
	}
	return text, key
}

// exceptsResource reports whether e can be true because a comparison with the resource is false. If
// negated is set, it answers for the negation of e. It does not look into macros.
func exceptsResource(e ast.Expr, negated bool) bool {
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		return exceptsResource(c.LoopStep(), negated) || exceptsResource(c.Result(), negated)
	}
	name, args := operandsOf(e)
	some := func(negated bool) bool {
		return slices.ContainsFunc(args, func(a ast.Expr) bool { return exceptsResource(a, negated) })
	}
	switch name {
	case "":
		return false
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

// restsOnCallerTime reports whether a leaf of e takes a part of issued_at, or reads issued_at and no
// other field.
func restsOnCallerTime(e ast.Expr) bool {
	issued := fields[IssuedAt].path
	if kind, operands := joined(e); kind != Leaf {
		return slices.ContainsFunc(operands, restsOnCallerTime)
	}
	if !mentions(e, issued) {
		return false
	}
	alone := true
	for e := range parts(e) {
		if name, args := operandsOf(e); timeParts[name] && mentions(args[0], issued) &&
			!mentions(args[0], fields[DecidedAt].path) {
			return true
		}
		if e.Kind() == ast.IdentKind && e.AsIdent() != issued {
			_, isField := fieldByPath(e.AsIdent())
			alone = alone && !isField
		}
	}
	return alone
}
