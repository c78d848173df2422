package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// A body of a condition matches only if each of its lines is true. So a line that compares a text of
// the input with constants is a demand: an input that does not meet it cannot match, even if another
// line would be an error. Each of these lines is a demand of the action type:
//
//	input.intent.action_type == "db.drop"
//	input.intent.action_type in {"db.drop", "db.truncate"}
//	types[input.intent.action_type]                          types := {"db.drop", "db.truncate"}
//	startswith(input.intent.action_type, "db.")
//	glob.match("db.*", ["."], input.intent.action_type)
//
// A line that is negated or has a `with` is not a demand. Neither is a line inside of a comprehension, an
// `every` or another rule. A condition with an `else` or with a default that is true has no demands.

// readsOf returns the references that the compiled rules of a condition read. It must run before guards
// are added to the rules.
func readsOf(c *ast.Compiler, rules []*ast.Rule) engine.RegoReads {
	reads := engine.RegoReads{Demands: demandsOf(c, rules)}
	for _, m := range c.Modules {
		addReads(&reads, m)
	}
	return reads
}

// addReads adds the reads of a compiled module's rules.
func addReads(reads *engine.RegoReads, m *ast.Module) {
	var visitor *ast.GenericVisitor
	visitor = ast.NewGenericVisitor(func(x any) bool {
		ref, ok := x.(ast.Ref)
		if v, isVar := x.(ast.Var); isVar {
			ref, ok = ast.Ref{ast.NewTerm(v)}, true
		}
		if !ok {
			return false
		}
		reads.Resource = reads.Resource || mayRead(ref, condition.Resource)
		reads.Agent = reads.Agent || mayRead(ref, condition.AgentID) || mayRead(ref, condition.GovernedAgentID)
		for _, t := range ref[1:] {
			visitor.Walk(t)
		}
		return true
	})
	for _, r := range m.Rules {
		visitor.Walk(r)
	}
}

// mayRead reports whether the value of ref may depend on a field.
func mayRead(ref ast.Ref, id condition.FieldID) bool {
	if !ref.HasPrefix(ast.InputRootRef) {
		return false
	}
	for i, name := range strings.Split(condition.FieldOf(id).Path(), ".") {
		if i+1 == len(ref) {
			return true // ref reads an object that has the field
		}
		if s, constant := ref[i+1].Value.(ast.String); constant && string(s) != name {
			return false
		}
	}
	return true
}

// demandsOf returns the demands of a condition that matches if one of rules does.
func demandsOf(c *ast.Compiler, rules []*ast.Rule) (common []condition.Demand) {
	bodies := 0
	for _, r := range rules {
		switch {
		case r.Default && r.Head.Value.Equal(ast.InternedTerm(false)):
			continue
		case r.Default || r.Else != nil:
			return nil
		}
		d := demander{compiler: c, terms: make(map[ast.Var]*ast.Term)}
		demands := d.body(r.Body)
		if bodies++; bodies > 1 {
			demands = condition.EitherDemand(common, demands)
		}
		if common = demands; len(common) == 0 {
			return nil
		}
	}
	return common
}

// demander finds the demands of one body.
type demander struct {
	compiler *ast.Compiler
	// terms has the term to which a line of the body makes a variable equal, by variable.
	terms map[ast.Var]*ast.Term
}

func (d *demander) body(b ast.Body) (demands []condition.Demand) {
	for _, e := range b {
		if e.Negated || len(e.With) > 0 || !e.IsEquality() && !e.IsAssignment() {
			continue
		}
		for i, t := range e.Operands()[:2] {
			if v, ok := t.Value.(ast.Var); ok && d.terms[v] == nil {
				d.terms[v] = e.Operand(1 - i)
				break
			}
		}
	}
	for _, e := range b {
		if e.Negated || len(e.With) > 0 {
			continue
		}
		if demand, ok := d.line(e); ok {
			demands = append(demands, demand)
		}
	}
	return demands
}

// line returns the demand of a line that has neither a negation nor a `with`.
func (d *demander) line(e *ast.Expr) (demand condition.Demand, ok bool) {
	var args []*ast.Term
	switch terms := e.Terms.(type) {
	case *ast.Term:
		return d.lookUp(terms)
	case []*ast.Term:
		args = terms[1:]
	default:
		return demand, false
	}
	switch function := e.Operator().String(); {
	case len(args) == 2 && (e.IsEquality() || e.IsAssignment() || function == ast.Equal.Name):
		if demand.Field, ok = d.field(args[0]); ok {
			demand.Values, ok = d.texts(args[1])
		} else if demand.Field, ok = d.field(args[1]); ok {
			demand.Values, ok = d.texts(args[0])
		}
	case len(args) == 2 && function == ast.Member.Name:
		if demand.Field, ok = d.field(args[0]); ok {
			demand.Values, ok = d.elements(args[1])
		}
	case len(args) == 2 && function == ast.StartsWith.Name:
		if demand.Field, ok = d.field(args[0]); ok {
			demand.Prefixes, ok = d.texts(args[1])
		}
	case len(args) == 2 && function == ast.AnyPrefixMatch.Name:
		if demand.Field, ok = d.field(args[0]); ok {
			if demand.Prefixes, ok = d.texts(args[1]); !ok {
				demand.Prefixes, ok = d.elements(args[1])
			}
		}
	case len(args) == 3 && function == ast.GlobMatch.Name:
		if demand.Field, ok = d.field(args[2]); ok {
			ok = d.glob(&demand, args[0])
		}
	}
	return demand, ok && !slices.Contains(demand.Prefixes, "")
}

// globSigns has the characters that may have a special meaning in a glob.
const globSigns = `*?[]{}\\!,`

// glob adds the values and prefixes of the texts that a pattern can match.
func (d *demander) glob(demand *condition.Demand, pattern *ast.Term) bool {
	texts, ok := d.texts(pattern)
	for _, s := range texts {
		if end := strings.IndexAny(s, globSigns); end >= 0 {
			demand.Prefixes = append(demand.Prefixes, s[:end])
		} else {
			demand.Values = append(demand.Values, s)
		}
	}
	return ok
}

// lookUp returns the demand of a line that looks up a text of the input in a constant set or object.
func (d *demander) lookUp(t *ast.Term) (demand condition.Demand, ok bool) {
	base, path := d.resolved(t)
	if len(path) != 1 {
		return demand, false
	}
	var keys []*ast.Term
	switch v := base.Value.(type) {
	case ast.Set:
		keys = v.Slice()
	case ast.Object:
		keys = v.Keys()
	default:
		return demand, false
	}
	if demand.Field, ok = d.field(path[0]); ok {
		demand.Values, ok = textsIn(keys)
	}
	return demand, ok
}

// field returns the field of the input whose text t reads.
func (d *demander) field(t *ast.Term) (condition.Field, bool) {
	base, path := d.resolved(t)
	if !base.Equal(ast.InputRootDocument) {
		return condition.Field{}, false
	}
	names, ok := textsIn(path)
	if !ok {
		return condition.Field{}, false
	}
	f, ok := condition.FieldAt(names)
	if f.ID == condition.GovernedAgentID {
		f = condition.FieldOf(condition.AgentID)
	}
	return f, ok && textReader(f) != nil
}

// texts returns all texts that t can be. t is a constant or an element of a constant list.
func (d *demander) texts(t *ast.Term) ([]string, bool) {
	base, path := d.resolved(t)
	switch len(path) {
	case 0:
		return textsIn([]*ast.Term{base})
	case 1:
		return textsIn(elementsOf(base))
	}
	return nil, false
}

// elements returns the texts in t, which is a constant list.
func (d *demander) elements(t *ast.Term) ([]string, bool) {
	base, path := d.resolved(t)
	if len(path) > 0 {
		return nil, false
	}
	return textsIn(elementsOf(base))
}

// elementsOf returns the elements of a constant list. For any other term it returns a null, which is no
// text.
func elementsOf(t *ast.Term) (terms []*ast.Term) {
	add := func(t *ast.Term) { terms = append(terms, t) }
	switch v := t.Value.(type) {
	case *ast.Array:
		v.Foreach(add)
	case ast.Set:
		v.Foreach(add)
	case ast.Object:
		v.Foreach(func(_, value *ast.Term) { add(value) })
	default:
		add(ast.NullTerm())
	}
	return terms
}

// textsIn returns terms as texts. It reports false if one of them is not a text.
func textsIn(terms []*ast.Term) ([]string, bool) {
	texts := make([]string, len(terms))
	for i, t := range terms {
		s, ok := t.Value.(ast.String)
		if !ok {
			return nil, false
		}
		texts[i] = string(s)
	}
	return texts, true
}

// resolved returns t as a base and the path into it. The base is the input or a constant, unless t cannot
// be resolved.
func (d *demander) resolved(t *ast.Term) (base *ast.Term, path []*ast.Term) {
	for range maxNames {
		switch v := t.Value.(type) {
		case ast.Var:
			if d.terms[v] == nil {
				return t, path
			}
			t = d.terms[v]
		case ast.Ref:
			if v.HasPrefix(ast.DefaultRootRef) {
				return d.constant(v, path)
			}
			t, path = v[0], slices.Concat(v[1:], path)
			if t.Equal(ast.InputRootDocument) {
				return t, path
			}
		default:
			return t, path
		}
	}
	return t, path
}

// constant returns the constant that a rule at the beginning of ref names, and the path into it: the rest
// of ref, and then path. If no such rule exists, it returns ref and path.
func (d *demander) constant(ref ast.Ref, path []*ast.Term) (base *ast.Term, rest []*ast.Term) {
	for n := 2; n <= len(ref); n++ {
		rules := d.compiler.GetRulesExact(ref[:n])
		if len(rules) != 1 || !isConstant(rules[0]) {
			continue
		}
		return rules[0].Head.Value, slices.Concat(ref[n:], path)
	}
	return ast.NewTerm(ref), path
}

// isConstant reports whether a rule only gives a name to a constant.
func isConstant(r *ast.Rule) bool {
	h := r.Head
	return !r.Default && r.Else == nil && len(h.Args) == 0 && h.Key == nil && h.Value != nil &&
		ast.IsConstant(h.Value.Value) && len(r.Body) == 1 && len(r.Body[0].With) == 0 && !r.Body[0].Negated &&
		isTrue(r.Body[0])
}

func isTrue(e *ast.Expr) bool {
	t, ok := e.Terms.(*ast.Term)
	return ok && t.Value.Compare(ast.Boolean(true)) == 0
}

// meets reports whether an input meets all demands of the condition. It charges for the comparisons. It
// does not stop when no steps are left, because an input that does not meet a demand does not match.
func (c *sandboxed) meets(in *engine.RegoInput, work *condition.Work) bool {
	for i := range c.reads.Demands {
		d := &c.reads.Demands[i]
		work.Charge(d.Size())
		if s, ok := textReader(d.Field)(in, d.Field.Key); !ok || !d.IsMet(s) {
			return false
		}
	}
	return true
}

// textReader returns a function that reads the text of a field from the input. The function reports false
// if the input lacks the field. textReader returns nil if no demand can be about the field.
func textReader(f condition.Field) func(in *engine.RegoInput, key string) (string, bool) {
	if f.Kind != condition.Text {
		return nil
	}
	switch f.ID {
	case condition.IntentID:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.Intent.IntentID, true }
	case condition.PolicyID:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.Intent.PolicyID, true }
	case condition.ActionType:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.Intent.ActionType, true }
	case condition.Resource:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.Resource, true }
	case condition.AgentID:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.AgentID, true }
	case condition.GovernedAgentStatus:
		return func(in *engine.RegoInput, _ string) (string, bool) { return in.Agent.String(), true }
	case condition.CostCurrency:
		return func(in *engine.RegoInput, _ string) (string, bool) {
			if in.Intent.Cost == nil {
				return "", false
			}
			return in.Intent.Cost.Currency, true
		}
	case condition.MetadataValue:
		return func(in *engine.RegoInput, key string) (string, bool) {
			s, ok := in.Intent.Metadata[key]
			return s, ok
		}
	}
	return nil
}
