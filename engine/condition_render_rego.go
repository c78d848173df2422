package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// regoWriter renders a tree as Rego v1 functions of one resource reading:
//
//	name(resource) if {
//		input.intent.action_type == "deploy"
//		name_1(resource)
//		not name_2(resource)
//	}
//
// A function is defined, and true, of exactly the intents its node is true of.
// Alternatives are further bodies of the same function, and what needs a body
// of its own is a function called name_1, name_2, …. A field that the intent
// lacks leaves a comparison undefined, which is the tree's false, also under a
// `not`. Nothing but input is read.
type regoWriter struct {
	name  string
	funcs []string
	count int
}

// regoLine is one expression of a body; resource says whether it mentions the
// parameter.
type regoLine struct {
	text     string
	resource bool
}

// renderRego returns the functions that render n, name's first, separated by
// empty lines. n has no opaque node.
func renderRego(n *node, name string) string {
	w := &regoWriter{name: name}
	w.define(name, n)
	return strings.Join(w.funcs, "\n")
}

// define writes the function called name, which renders n.
func (w *regoWriter) define(name string, n *node) {
	at := len(w.funcs)
	w.funcs = append(w.funcs, "")
	alternatives := []*node{n}
	if n.kind == nodeAny && len(n.kids) > 0 {
		alternatives = n.kids
	}
	bodies := make([]string, len(alternatives))
	for i, alternative := range alternatives {
		bodies[i] = regoBody(name, w.lines(alternative))
	}
	w.funcs[at] = strings.Join(bodies, "\n")
}

// regoBody writes one body of a function. A parameter without a use is called
// _, as the compiler's strict mode demands.
func regoBody(name string, lines []regoLine) string {
	param := "_"
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("\t" + line.text + "\n")
		if line.resource {
			param = "resource"
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
	case n.isConst(true):
		return regoLine{text: "true"}
	case n.isConst(false):
		return regoLine{text: "false"}
	case n.kind == nodeNot:
		line := w.line(n.kids[0])
		return regoLine{text: "not " + line.text, resource: line.resource}
	case n.kind != nodeLeaf:
		return w.call(func(name string) { w.define(name, n) })
	case n.op.isGlob():
		return w.globs(n)
	}
	return regoLine{text: regoLeaf(n), resource: n.readsResource()}
}

// call has a further function defined and returns its call.
func (w *regoWriter) call(define func(name string)) regoLine {
	w.count++
	name := w.name + "_" + strconv.Itoa(w.count)
	define(name)
	return regoLine{text: name + "(resource)", resource: true}
}

// globs renders a leaf of globs: one call where one glob says it all, else a
// function with an alternative for each.
func (w *regoWriter) globs(n *node) regoLine {
	var lines []regoLine
	for _, v := range n.values {
		for _, expr := range regoGlob(n, v.str) {
			lines = append(lines, regoLine{text: expr, resource: n.readsResource()})
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return w.call(func(name string) {
		bodies := make([]string, len(lines))
		for i, line := range lines {
			bodies[i] = regoBody(name, []regoLine{line})
		}
		w.funcs = append(w.funcs, strings.Join(bodies, "\n"))
	})
}

func regoLeaf(n *node) string {
	ref, first := regoRef(n.field), ""
	if len(n.values) > 0 {
		first = regoConstant(n.field, n.values[0])
	}
	switch n.op {
	case opExists:
		return ref
	case opIn:
		members := make([]string, len(n.values))
		for i, v := range n.values {
			members[i] = regoConstant(n.field, v)
		}
		return fmt.Sprintf("%s in {%s}", ref, strings.Join(members, ", "))
	case opRegex:
		return fmt.Sprintf("regex.match(%s, %s)", first, ref)
	case opContains, opStartsWith, opEndsWith:
		return fmt.Sprintf("%s(%s, %s)", strings.ToLower(n.op.String()), ref, first)
	}
	if n.field.kind == kindTime {
		ref = "time.parse_rfc3339_ns(" + ref + ")"
	}
	return fmt.Sprintf("%s %s %s", ref, n.op, first)
}

var regoIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func regoRef(f field) string {
	switch {
	case f.name == resourceField:
		return "resource"
	case f.keyed && regoIdentifier.MatchString(f.key) && !isRegoKeyword(f.key):
		return "input." + f.path + "." + f.key
	case f.keyed:
		return "input." + f.path + "[" + quote(f.key) + "]"
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
	case kindInt:
		return strconv.FormatInt(v.num, 10)
	case kindTime:
		return "time.parse_rfc3339_ns(" + quote(v.str) + ")"
	}
	return quote(v.str)
}

// regoGlob returns the expressions of which one is true where the glob fits.
func regoGlob(n *node, pattern string) []string {
	ref := regoRef(n.field)
	switch {
	case n.op == opResourceGlob:
		var exprs []string
		for _, form := range globForms([]string{pattern}) {
			exprs = append(exprs, fmt.Sprintf(`glob.match(%s, ["/"], %s)`, quote(form), ref))
		}
		return exprs
	case n.op == opGlob:
		return []string{fmt.Sprintf(`glob.match(%s, ["/"], %s)`, quote(pattern), ref)}
	case strings.Contains(pattern, "*"):
		return []string{fmt.Sprintf("glob.match(%s, null, %s)", quote(pattern), ref)}
	}
	return []string{fmt.Sprintf("%s == %s", ref, quote(pattern))}
}
