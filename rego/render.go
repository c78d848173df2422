package rego

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// rendering is a tree as Rego v1 functions of one reading of the resource:
//
//	name(reading) if {
//		input.intent.action_type == "deploy"
//		name_1(reading)
//		not name_2(reading)
//	}
//
// A function is defined, and true, for exactly the intents for which its node is true. Alternatives
// are further bodies of the same function. If a part needs its own body, it becomes a function
// called name_1, name_2, …. A comparison with a missing field is undefined, which stands for the
// tree's false. Functions read only the input.
type rendering struct {
	name string
	// bodies are the bodies of the function called name. helpers are the functions that they
	// call.
	bodies  [][]line
	helpers []string
	count   int
	// side is the side of the resource's readings that the rule asks.
	side resource.Side
	// param is the parameter of the functions: a reading of the resource, an element of a list, or
	// a reading of an element.
	param string
	// readsValues says that an expression reads how metadata values are read.
	readsValues bool
	// readsNames says that an expression reads the names of the agent.
	readsNames bool
}

const (
	paramReading = "reading"
	paramElement = "element"
	paramItem    = "item"
)

// line is one expression of a body. param says whether it mentions the parameter.
type line struct {
	text  string
	param bool
}

// render returns the functions that render n for a rule that asks one side. n must have no opaque
// part.
func render(n *condition.Node, name string, side resource.Side) *rendering {
	w := &rendering{name: name, param: paramReading, side: side}
	w.bodies = w.alternatives(n.Affirm())
	return w
}

// String returns the functions, separated by empty lines. The function called name is the first.
func (w *rendering) String() string {
	return strings.Join(append([]string{w.function(w.name, w.bodies)}, w.helpers...), "\n")
}

// readsResource reports whether an expression of the function reads the resource.
func (w *rendering) readsResource() bool {
	return slices.ContainsFunc(w.bodies, func(lines []line) bool {
		return slices.ContainsFunc(lines, func(l line) bool { return l.param })
	})
}

// define adds a function that renders n.
func (w *rendering) define(name string, n *condition.Node) {
	at := len(w.helpers)
	w.helpers = append(w.helpers, "")
	w.helpers[at] = w.function(name, w.alternatives(n))
}

func (w *rendering) alternatives(n *condition.Node) [][]line {
	kids := []*condition.Node{n}
	if n.Kind == condition.Any && len(n.Kids) > 0 {
		kids = n.Kids
	}
	bodies := make([][]line, len(kids))
	for i, k := range kids {
		bodies[i] = w.lines(k)
	}
	return bodies
}

// function writes a function with the given bodies.
func (w *rendering) function(name string, bodies [][]line) string {
	if len(bodies) == 1 && len(bodies[0]) == 1 && bodies[0][0] == (line{text: "true"}) {
		return name + "(_) := true\n"
	}
	texts := make([]string, len(bodies))
	for i, lines := range bodies {
		texts[i] = w.body(name, lines)
	}
	return strings.Join(texts, "\n")
}

// body writes one body of a function. An unused parameter is called _, as the compiler's strict
// mode demands.
func (w *rendering) body(name string, lines []line) string {
	param := "_"
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("\t" + line.text + "\n")
		if line.param {
			param = w.param
		}
	}
	return name + "(" + param + ") if {\n" + b.String() + "}\n"
}

// lines returns the expressions of n's body. n is true if all of them hold.
func (w *rendering) lines(n *condition.Node) []line {
	if n.Kind != condition.All || len(n.Kids) == 0 {
		return w.exprs(n)
	}
	lines := make([]line, 0, len(n.Kids))
	for _, k := range n.Kids {
		lines = append(lines, w.exprs(k)...)
	}
	return lines
}

// exprs returns the expressions of n, which is no conjunction. Only a leaf can have more than one.
func (w *rendering) exprs(n *condition.Node) []line {
	switch {
	case n.Kind != condition.Leaf, n.Field.ID == condition.Resource && n.Side != 0:
	case n.AsksNames():
		return w.names(n)
	case n.IsRead(), n.Op == condition.ResourceGlob:
	case n.Op.IsGlob():
		return w.globs(n)
	}
	return []line{w.line(n)}
}

// line renders n as one expression.
func (w *rendering) line(n *condition.Node) line {
	f := n.Field
	switch {
	case n.IsConst(false):
		return line{text: "false"}
	case n.IsConst(true):
		return line{text: "true"}
	case n.Kind == condition.Not:
		negated := w.negatable(n.Kids[0])
		return line{text: "not " + negated.text, param: negated.param}
	case n.Kind != condition.Leaf:
		return w.call(func(name string) { w.define(name, n) })
	case f.ID == condition.Resource && n.Side != 0:
		return w.readings(n)
	case n.IsRead():
		return w.read(n)
	case n.Op == condition.ResourceGlob:
		return w.resourceGlobs(n)
	case n.AsksNames(), n.Op.IsGlob():
		if exprs := w.exprs(n); len(exprs) == 1 {
			return exprs[0]
		} else {
			return w.call(func(name string) { w.helpers = append(w.helpers, w.body(name, exprs)) })
		}
	case n.Op == condition.Every || n.Op == condition.Some:
		return w.quantified(n)
	case (f.Kind == condition.Digits || f.Kind == condition.Decimal || f.ID == condition.CounterValue) &&
		n.Op != condition.Exists:
		return w.call(func(name string) {
			w.helpers = append(w.helpers, w.body(name, []line{w.line(condition.Has(f)), {leaf(n), readsParam(n)}}))
		})
	}
	return line{text: leaf(n), param: readsParam(n)}
}

// readsParam reports whether a leaf reads the parameter of the functions.
func readsParam(n *condition.Node) bool {
	return n.ReadsOneReading() || n.Field.ID == condition.Item || n.Field.ID == condition.AgentName
}

// negatable renders n for use under a `not`. OPA's compiler moves an operand of a built-in function
// out of the negation. Then an undefined operand makes the `not` undefined, too. So a comparison of
// an optional field needs a function around it.
func (w *rendering) negatable(n *condition.Node) line {
	if n.Kind == condition.Leaf && n.Guarded() {
		return w.call(func(name string) { w.define(name, n) })
	}
	return w.line(n)
}

// next returns the name of a new function.
func (w *rendering) next() string {
	w.count++
	return w.name + "_" + strconv.Itoa(w.count)
}

// call defines a new function and returns its call.
func (w *rendering) call(define func(name string)) line {
	name := w.next()
	define(name)
	return line{text: name + "(" + w.param + ")", param: true}
}

// rule defines a new rule without a parameter and returns its name.
func (w *rendering) rule(define func(name string) string) line {
	name := w.next()
	w.helpers = append(w.helpers, define(name)+"\n")
	return line{text: name}
}

// readings renders a comparison with the readings of the resource.
func (w *rendering) readings(n *condition.Node) line {
	var exprs []glob.Expression
	switch n.Op {
	case condition.ResourceGlob:
		exprs = glob.Expressions(n.Texts(), n.Side)
	case condition.Eq, condition.In:
		exprs = glob.ExactExpressions(n.Texts(), n.Side)
	}
	return w.rule(func(name string) string {
		switch {
		case exprs != nil && n.Side == resource.ForAllow:
			return everyReading(name, exprs)
		case exprs != nil:
			return someReading(name, exprs)
		case n.Side == resource.ForAllow:
			return ruleOf(name, []string{haveAllowed, everyAllowed, "\t" + leaf(n), "}"})
		}
		return ruleOf(name, []string{someBlocked, leaf(n)})
	})
}

// resourceGlobs renders resource_glob on one reading of the resource, or on the text of another
// field.
func (w *rendering) resourceGlobs(n *condition.Node) line {
	exprs := glob.Expressions(n.Texts(), w.side)
	if n.Field.ID != condition.Resource {
		return line{text: "regex.match(" + anchored(glob.Join(exprs)) + ", " + ref(n.Field) + ")", param: readsParam(n)}
	}
	return w.call(func(name string) {
		rules := matches(name+"(reading)", nil, exprs)
		if w.side == resource.ForAllow {
			covered, helpers := covers(name, exprs)
			rules = append([]string{ruleOf(name+"(reading)", []string{covered})}, helpers...)
		}
		w.helpers = append(w.helpers, strings.Join(rules, "\n\n")+"\n")
	})
}

// globs renders a leaf of globs. OPA's index of rules finds a rule by startswith and endswith, and it
// does not by most globs. So globs that are literals with a star at one end become these.
func (w *rendering) globs(n *condition.Node) []line {
	reads := readsParam(n)
	affixes := affixesOf(n)
	switch {
	case affixes == nil:
		return []line{w.searched(n)}
	case affixes.crosses():
		return []line{{affixes.begin(ref(n.Field)), reads}}
	case len(affixes) == 1:
		return []line{{affixes.begin(ref(n.Field)), reads}, {affixes.stays(ref(n.Field)), reads}}
	}
	return []line{{affixes.begin(ref(n.Field)), reads}, w.searched(n)}
}

// searched renders a leaf of globs of any form. It renders one glob as a call, and several globs as a
// function that tries each. If glob.match cannot match one of them, it renders all as one regular
// expression.
func (w *rendering) searched(n *condition.Node) line {
	if n.Op == condition.AddressGlob {
		return line{text: fmt.Sprintf("regex.match(%s, %s)", union(n.Texts(), glob.AddressExpressions), ref(n.Field)),
			param: readsParam(n)}
	}
	if expressions := searching(n); expressions != nil {
		return line{text: fmt.Sprintf("regex.match(%s, %s)", union(n.Texts(), expressions), ref(n.Field)),
			param: readsParam(n)}
	}
	delimiters := `["/"]`
	if n.Op == condition.ActionGlob {
		delimiters = "null"
	}
	var patterns []string
	for _, text := range n.Texts() {
		patterns = appendDistinct(patterns, condition.Quote(text))
	}
	match := func(pattern string) line {
		return line{text: fmt.Sprintf("glob.match(%s, %s, %s)", pattern, delimiters, ref(n.Field)),
			param: readsParam(n)}
	}
	if len(patterns) == 1 {
		return match(patterns[0])
	}
	some := line{text: "some pattern in {" + strings.Join(patterns, ", ") + "}"}
	return w.call(func(name string) {
		w.helpers = append(w.helpers, w.body(name, []line{some, match("pattern")}))
	})
}
