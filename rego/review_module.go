package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// read records every field that the module reads. If a name stands for a field, the field is
// recorded where the name is used, not where it gets its value.
func (r *reviewer) read() {
	named := make(map[*ast.Term]bool)
	for _, t := range r.names {
		_, isRef := t.Value.(ast.Ref)
		named[t] = isRef
	}
	ast.WalkExprs(r.module, func(e *ast.Expr) bool {
		if e.IsAssignment() && named[e.Operand(1)] {
			named[e.Operand(0)] = true
		}
		return false
	})
	var visit func(t *ast.Term) bool
	visit = func(t *ast.Term) bool {
		if named[t] {
			return true
		}
		if ref := r.resolve(t); len(ref) > 2 && ref[0].Equal(ast.InputRootDocument) {
			r.fields[fieldName(ref[1:])] = true
		}
		ref, isRef := t.Value.(ast.Ref)
		for i := 1; i < len(ref); i++ { // the whole reference includes its head
			ast.WalkTerms(ref[i], visit)
		}
		return isRef
	}
	ast.WalkTerms(r.module, visit)
}

// fieldName returns the name of the field at a path below input.
func fieldName(path ast.Ref) string {
	var names []string
	for _, t := range path {
		name, ok := t.Value.(ast.String)
		if !ok {
			break
		}
		names = append(names, string(name))
	}
	if len(names) > 0 && names[0] == "intent" {
		names = names[1:]
	}
	name := strings.Join(names[:min(len(names), 2)], ".")
	if name == "agent.id" { // the agent's id is the intent's agent_id
		return "agent_id"
	}
	return name
}

// misordered finds comparisons of order that do not do what they say. It reports a metadata value
// that is compared with a number, or with a text that looks like a number. It also reports texts
// without quotes. text is the first text that looks like a number and is compared with any other
// value.
func (r *reviewer) misordered(found *condition.Error) (text string) {
	orders := []string{ast.LessThan.Name, ast.LessThanEq.Name, ast.GreaterThan.Name, ast.GreaterThanEq.Name}
	calls(r.module, func(operator *ast.Term, args []*ast.Term) {
		if len(args) != 2 || !slices.Contains(orders, operator.Value.String()) {
			return
		}
		for i, arg := range args {
			key, ok := metadataKey(r.resolve(arg))
			if s, isText := args[1-i].Value.(ast.String); !ok && isText && text == "" &&
				condition.LooksLikeNumber(string(s)) {
				text = string(s)
			}
			if !ok {
				continue
			}
			switch other := args[1-i].Value.(type) {
			case ast.String:
				if condition.LooksLikeNumber(string(other)) {
					found.Add(mistake(arg.Location,
						`metadata.%s orders as text, in which "10" comes before "9": compare to_number of it with the number`, key))
				}
			case ast.Number:
				found.Add(mistake(arg.Location,
					"metadata.%s is text, which Rego orders after every number: compare to_number of it", key))
			}
		}
	})
	r.unused(found)
	return text
}

// unused finds variables that are unified with the input and are used nowhere else. Each is
// probably a text without quotes. The unification is always true.
func (r *reviewer) unused(found *condition.Error) {
	times := map[ast.Var]int{}
	ast.WalkVars(r.module, func(v ast.Var) bool {
		times[v]++
		return false
	})
	ast.WalkExprs(r.module, func(e *ast.Expr) bool {
		if !e.IsEquality() || len(e.Operands()) != 2 {
			return false
		}
		for i, side := range e.Operands() {
			v, ok := side.Value.(ast.Var)
			ref, other := e.Operand(1 - i).Value.(ast.Ref)
			if ok && other && times[v] == 1 && !v.IsWildcard() && ref.HasPrefix(ast.InputRootRef) {
				found.Add(mistake(side.Location,
					`%v is asked by nothing else, so this is true of every value: write == and text in quotes, "%v"`, v,
					v))
			}
		}
		return false
	})
}
