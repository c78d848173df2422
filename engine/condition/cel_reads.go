package condition

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// celReads returns what each leaf of an expression reads that has compiled.
func celReads(source string) (all []LeafReads) {
	l, err := cels()
	if err != nil {
		return nil
	}
	checked, err := l.check(source)
	if err != nil {
		return nil
	}
	var visit func(e ast.Expr)
	visit = func(e ast.Expr) {
		kind, operands := joined(e)
		if kind == Leaf {
			var r LeafReads
			r.expression(e)
			all = append(all, r)
		}
		for _, operand := range operands {
			visit(operand)
		}
	}
	visit(checked.NativeRep().Expr())
	return all
}

// expression adds what an expression in CEL reads.
func (r *LeafReads) expression(e ast.Expr) {
	metadata := fields[Metadata].path
	named := make(map[int64]bool) // the variables that are the metadata of which one key is read
	for e := range parts(e) {
		name, args := operandsOf(e)
		switch {
		case e.Kind() == ast.SelectKind && isIdent(e.AsSelect().Operand(), metadata):
			named[e.AsSelect().Operand().ID()] = true
			if e.AsSelect().IsTestOnly() {
				r.presence(MetadataKey(e.AsSelect().FieldName()))
				continue
			}
		case name == operators.Index && isIdent(args[0], metadata):
			_, named[args[0].ID()] = fieldOf(e)
		}
		if f, ok := presenceIn(e); ok {
			if name == operators.In {
				named[args[1].ID()] = true
			}
			r.presence(f)
			continue
		}
		if f, ok := fieldOf(e); ok && f.ID != Metadata {
			r.field(f)
		}
	}
	for e := range parts(e) {
		r.metadata = r.metadata || isIdent(e, metadata) && !named[e.ID()]
	}
}
