package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"writ/engine/glob"
)

// regoWriter renders a tree as Rego v1 functions of one reading of the resource:
//
//	name(reading) if {
//		input.intent.action_type == "deploy"
//		name_1(reading)
//		not name_2(reading)
//	}
//
// A function is defined, and true, of exactly the intents its node is true of.
// Alternatives are further bodies of the same function, and what needs a body
// of its own is a function called name_1, name_2, …. A field that the intent
// lacks leaves a comparison undefined, which is the tree's false. Nothing but
// input is read.
type regoWriter struct {
	name  string
	funcs []string
	count int
	// every says that a reading has to match to each of its readers.
	every bool
	// param is what the functions are of: a reading of the resource or, within a
	// list, an item.
	param string
	// items is the function that makes a list of a text, empty until one is asked.
	items string
}

const (
	paramReading = "reading"
	paramItem    = "item"
)

// regoLine is one expression of a body; param says whether it mentions the
// parameter.
type regoLine struct {
	text  string
	param bool
}

// renderRego returns the functions that render n, name's first, separated by
// empty lines. n has no opaque node. every is set for a rule that allows.
func renderRego(n *node, name string, every bool) string {
	w := &regoWriter{name: name, param: paramReading, every: every}
	w.define(name, affirm(n))
	return strings.Join(w.funcs, "\n")
}

// affirm returns n with every negation at a leaf. What has to hold is then said
// as such where it can be: OPA's index finds rules by the equalities they ask
// for, but not under a negation.
func affirm(n *node) *node {
	switch {
	case n.kind == nodeAll || n.kind == nodeAny:
		return combine(n.kind, affirmAll(n.kids, affirm))
	case n.kind != nodeNot:
		return n
	}
	deny := func(k *node) *node { return affirm(not(k)) }
	switch k := n.kids[0]; k.kind {
	case nodeAll:
		return anyOf(affirmAll(k.kids, deny)...)
	case nodeAny:
		return all(affirmAll(k.kids, deny)...)
	}
	return n
}

func affirmAll(kids []*node, f func(*node) *node) []*node {
	out := make([]*node, len(kids))
	for i, k := range kids {
		out[i] = f(k)
	}
	return out
}

// define writes the function called name, which renders n.
func (w *regoWriter) define(name string, n *node) {
	at := len(w.funcs)
	w.funcs = append(w.funcs, "")
	if n.isConst(true) {
		w.funcs[at] = name + "(_) := true\n"
		return
	}
	alternatives := []*node{n}
	if n.kind == nodeAny && len(n.kids) > 0 {
		alternatives = n.kids
	}
	bodies := make([]string, len(alternatives))
	for i, alternative := range alternatives {
		bodies[i] = w.body(name, w.lines(alternative))
	}
	w.funcs[at] = strings.Join(bodies, "\n")
}

// body writes one body of a function. A parameter without a use is called
// _, as the compiler's strict mode demands.
func (w *regoWriter) body(name string, lines []regoLine) string {
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

// lines returns the expressions that hold together where n is true.
func (w *regoWriter) lines(n *node) []regoLine {
	if n.kind != nodeAll || len(n.kids) == 0 {
		return []regoLine{w.line(n)}
	}
	lines := make([]regoLine, 0, len(n.kids))
	for _, k := range n.kids {
		lines = append(lines, w.line(k))
	}
	return lines
}

func (w *regoWriter) line(n *node) regoLine {
	switch {
	case n.isConst(false):
		return regoLine{text: "false"}
	case n.kind == nodeNot:
		line := w.negatable(n.kids[0])
		return regoLine{text: "not " + line.text, param: line.param}
	case n.kind != nodeLeaf:
		return w.call(func(name string) { w.define(name, n) })
	case n.isResource() && n.reads != readsOne:
		return w.readings(n)
	case n.op == opResourceGlob:
		return w.resourceGlobs(n)
	case n.op.isGlob():
		return w.globs(n)
	case n.op == opEach || n.op == opSome:
		return w.quantified(n)
	case n.field.kind == kindSize:
		count := fmt.Sprintf("count(%s(%s))", w.itemsFunction(), regoRef(n.field))
		return regoLine{text: fmt.Sprintf("%s %s %s", count, n.op, regoConstant(n.field, n.values[0]))}
	case (n.field.kind == kindDigits || n.field.kind == kindDecimal) && n.op != opExists:
		return w.call(func(name string) {
			w.funcs = append(w.funcs, w.body(name, []regoLine{w.line(exists(n.field)), {regoLeaf(n), n.readsParam()}}))
		})
	}
	return regoLine{text: regoLeaf(n), param: n.readsParam()}
}

// readsParam reports whether a leaf reads what the functions are of.
func (n *node) readsParam() bool {
	return n.readsResource() || n.field.name == itemField
}

// quantified renders a leaf that asks each or some item of a list: a function of
// one item, and one that asks it.
func (w *regoWriter) quantified(n *node) regoLine {
	items := fmt.Sprintf("%s(%s)", w.itemsFunction(), regoRef(n.field))
	outer := w.param
	w.param = paramItem
	inner := w.call(func(name string) { w.define(name, affirm(n.kids[0])) })
	w.param = outer
	lines := []regoLine{{text: "some item in " + items}, {text: inner.text}}
	if n.op == opEach {
		lines = []regoLine{{text: fmt.Sprintf("every item in %s { %s }", items, inner.text)}}
	}
	return w.call(func(name string) { w.funcs = append(w.funcs, w.body(name, lines)) })
}

// itemsFunction returns the name of a function of a text that is the list of its
// items: see [itemsOf].
func (w *regoWriter) itemsFunction() string {
	if w.items != "" {
		return w.items
	}
	w.count += 2
	w.items = w.name + "_" + strconv.Itoa(w.count-1)
	parts := w.name + "_" + strconv.Itoa(w.count)
	w.funcs = append(w.funcs,
		fmt.Sprintf("%s(text) := [item | some part in %s(text); item := trim_space(part); item != \"\"]\n", w.items, parts),
		fmt.Sprintf(`%s(text) := parts if {
	json.is_valid(text)
	parts := json.unmarshal(text)
	is_array(parts)
	every part in parts { is_string(part) }
} else := split(text, ",")
`, parts))
	return w.items
}

// negatable is line for use under a `not`. An undefined operand of a built-in
// leaves `not` undefined too, because the compiler takes it out of the negation,
// so that a comparison of an optional field needs a function around it.
func (w *regoWriter) negatable(n *node) regoLine {
	if n.kind == nodeLeaf && n.guarded() {
		return w.call(func(name string) { w.define(name, n) })
	}
	return w.line(n)
}

// call has a further function defined and returns its call.
func (w *regoWriter) call(define func(name string)) regoLine {
	w.count++
	name := w.name + "_" + strconv.Itoa(w.count)
	define(name)
	return regoLine{text: name + "(" + w.param + ")", param: true}
}

// rule has a further rule, without a parameter, defined and returns its name.
func (w *regoWriter) rule(define func(name string) string) regoLine {
	w.count++
	name := w.name + "_" + strconv.Itoa(w.count)
	w.funcs = append(w.funcs, define(name)+"\n")
	return regoLine{text: name}
}

// readings renders a comparison with the readings of the resource.
func (w *regoWriter) readings(n *node) regoLine {
	use, every := glob.Use(n.reads == readsAny), n.reads == readsEvery
	var exprs []glob.Expression
	switch n.op {
	case opResourceGlob:
		exprs = glob.Expressions(n.texts(), use)
	case opEq, opIn:
		exprs = glob.ExactExpressions(n.texts(), use)
	}
	return w.rule(func(name string) string {
		switch {
		case exprs != nil && every:
			return regoEvery(name, exprs)
		case exprs != nil:
			return regoAny(name, exprs)
		case every:
			return regoRule(name, []string{haveAllowed, everyAllowed, "\t" + regoLeaf(n), "}"})
		}
		return regoRule(name, []string{someBlocked, regoLeaf(n)})
	})
}

// resourceGlobs renders resource_glob on one reading of the resource, or on
// another text.
func (w *regoWriter) resourceGlobs(n *node) regoLine {
	exprs := glob.Expressions(n.texts(), glob.Use(!w.every))
	if !n.isResource() {
		return regoLine{text: "regex.match(" + anchored(glob.Join(exprs)) + ", " + regoRef(n.field) + ")", param: n.readsParam()}
	}
	return w.call(func(name string) {
		rules := regoMatches(name+"(reading)", nil, exprs)
		if w.every {
			covered, helpers := regoCovers(name, exprs)
			rules = append([]string{regoRule(name+"(reading)", []string{covered})}, helpers...)
		}
		w.funcs = append(w.funcs, strings.Join(rules, "\n\n")+"\n")
	})
}

// globs renders a leaf of globs: a call where there is one, else a function
// that tries each. Where glob.match does not fit, a regular expression stands for
// all of them.
func (w *regoWriter) globs(n *node) regoLine {
	if expressions := n.searching(); expressions != nil {
		text := fmt.Sprintf("regex.match(%s, %s)", regoUnion(n.texts(), expressions), regoRef(n.field))
		return regoLine{text: text, param: n.readsParam()}
	}
	delimiters := `["/"]`
	if n.op == opActionGlob {
		delimiters = "null"
	}
	var patterns []string
	for _, v := range n.values {
		patterns = appendDistinct(patterns, Quote(v.str))
	}
	match := func(pattern string) regoLine {
		text := fmt.Sprintf("glob.match(%s, %s, %s)", pattern, delimiters, regoRef(n.field))
		return regoLine{text: text, param: n.readsParam()}
	}
	if len(patterns) == 1 {
		return match(patterns[0])
	}
	some := regoLine{text: "some pattern in {" + strings.Join(patterns, ", ") + "}"}
	return w.call(func(name string) {
		w.funcs = append(w.funcs, w.body(name, []regoLine{some, match("pattern")}))
	})
}

// searching returns what makes expressions of the patterns of a leaf, or nil where
// glob.match will do for all of them.
func (n *node) searching() (expressions func(string) []string) {
	if !slices.ContainsFunc(n.texts(), func(pattern string) bool { return !glob.IsSimple(pattern) }) {
		return nil
	}
	if n.op == opActionGlob {
		return actionExpression
	}
	return glob.PlainExpressions
}

// appendDistinct appends s unless list has it.
func appendDistinct(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func regoLeaf(n *node) string {
	ref, first := regoRef(n.field), ""
	if len(n.values) > 0 {
		first = regoConstant(n.field, n.values[0])
	}
	switch n.op {
	case opExists:
		switch n.field.kind {
		case kindDigits:
			return fmt.Sprintf("regex.match(%s, %s)", Quote(digits()), ref)
		case kindDecimal:
			return fmt.Sprintf("regex.match(%s, %s)", Quote(decimalExpression()), ref)
		}
		return ref
	case opIn:
		var members []string
		for _, v := range n.values {
			members = appendDistinct(members, regoConstant(n.field, v))
		}
		return fmt.Sprintf("%s in {%s}", ref, strings.Join(members, ", "))
	case opRegex:
		return fmt.Sprintf("regex.match(%s, %s)", first, ref)
	case opContains, opStartsWith, opEndsWith:
		return fmt.Sprintf("%s(%s, %s)", strings.ToLower(n.op.String()), ref, first)
	}
	switch n.field.kind {
	case kindTime:
		ref = "time.parse_rfc3339_ns(" + ref + ")"
	case kindDigits, kindDecimal:
		ref = "to_number(" + ref + ")"
	}
	return fmt.Sprintf("%s %s %s", ref, n.op, first)
}

var regoIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func regoRef(f field) string {
	switch {
	case f.name == resourceField:
		return paramReading + ".text"
	case f.name == itemField:
		return paramItem
	case f.keyed && regoIdentifier.MatchString(f.key) && !isRegoKeyword(f.key):
		return "input." + f.path + "." + f.key
	case f.keyed:
		return "input." + f.path + "[" + Quote(f.key) + "]"
	}
	return "input." + f.path
}

// isRegoKeyword reports whether word cannot follow a dot in Rego v1.
func isRegoKeyword(word string) bool {
	switch word {
	case "as", "contains", "default", "else", "every", "false", "if", "import", "in", "not", "null", "package", "some", "true", "with":
		return true
	}
	return false
}

func regoConstant(f field, v constant) string {
	switch f.kind {
	case kindInt, kindDigits, kindSize:
		return strconv.FormatInt(v.num, 10)
	case kindDecimal:
		return v.str
	case kindTime:
		return "time.parse_rfc3339_ns(" + Quote(v.str) + ")"
	}
	return Quote(v.str)
}
