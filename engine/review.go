package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// RegoReview is what a condition in Rego says that its author may not mean.
type RegoReview struct {
	// Misordered says where a metadata value is ordered as text that must have been
	// meant as a number. It is nil where none is.
	Misordered error
	// ExceptsResource is set where the condition holds because a comparison with
	// the resource does not.
	ExceptsResource bool
	// Dodges are the metadata keys without which the condition does not hold,
	// whatever is behind them, unless it asks for the key itself. They are sorted.
	Dodges []string
}

// Warnings says of a rule that denies or asks for approval where it may do other
// than its author means. Nothing of it makes the rule invalid.
func (c *CompiledRule) Warnings() []FieldError {
	root, err := decodeCondition(c.rule.Condition)
	if err != nil || c.err != nil || c.outcome == Allow {
		return nil
	}
	const notThen = "the rule does not match then"
	does := map[Decision]string{Deny: "denies", ApprovalRequired: "asks for approval"}[c.outcome]
	var w problems
	excepts := func(language string) {
		w.add("condition", "compares intent.resource in %s for what it is not: the condition is asked once for each reading of the resource, "+
			"and one without the query, or without a slash at the end, is another text, so the rule also applies to what it excepts; "+
			`write a match object such as {"resource":{"$ne":"…"}}`, language)
	}
	rests := func(keys []string, then, instead string) {
		for _, key := range keys {
			if !strings.HasPrefix(key, FactPrefix) {
				w.add("condition", "rests on metadata.%s, which the caller may leave out: %s; %s; or rest on a key that begins with %s",
					key, then, fmt.Sprintf(instead, Quote(key)), FactPrefix)
			}
		}
	}
	_, isCEL := root.member("cel")
	switch {
	case c.cond.rego != nil:
		review := c.cond.rego.Review()
		if review.ExceptsResource {
			excepts("Rego")
		}
		rests(review.Dodges, notThen, "if that is meant, write input.intent.metadata[%[1]s] in a line of its own; if not, a second match with `not` before it")
	case isCEL:
		expr, err := celOf(c.cond.cel)
		if err != nil {
			return nil // it has compiled
		}
		if exceptsResource(expr, false) {
			excepts("CEL")
		}
		rests(unguarded(expr), "that is an error, with which the rule "+does,
			"if that is meant, write !(%[1]s in intent.metadata) || …; if not, %[1]s in intent.metadata && …")
	default:
		tree, _, err := parseCondition(root, true)
		if err != nil {
			return nil // it has compiled
		}
		rests(dodges(tree), notThen, `if that is meant, compare %[1]s with {"$exists":true} as well; if not, with {"$exists":false} in an $or`)
	}
	return w.fields
}

func celOf(source string) (ast.Expr, error) {
	env, err := standardEnv()
	if err != nil {
		return nil, err
	}
	checked, err := env.rules.check(source)
	if err != nil {
		return nil, err
	}
	return checked.NativeRep().Expr(), nil
}

// dodges returns the metadata keys without which a comparison in tree that makes it
// true is false, but those that the tree also asks the existence of.
func dodges(tree *node) []string {
	reads, asks := map[string]bool{}, map[string]bool{}
	var visit func(n *node, negated bool)
	visit = func(n *node, negated bool) {
		switch {
		case n.kind == nodeLeaf && n.op == opExists:
			asks[n.field.key] = true
		case n.kind == nodeLeaf && n.field.keyed && !negated:
			reads[n.field.key] = true
		case n.kind != nodeLeaf:
			for _, k := range n.kids {
				visit(k, negated != (n.kind == nodeNot))
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
		if f, ok := fieldOf(e); ok && f.keyed {
			reads[f.key] = true
		}
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.In {
			return
		}
		key, ok := textLiteral(e.AsCall().Args()[0])
		if ok && isIdent(e.AsCall().Args()[1], metadataPath) {
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
		return !negated && mentions(e, "intent.resource")
	}
	return negated && mentions(e, "intent.resource")
}
