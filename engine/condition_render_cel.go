package engine

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// renderCEL returns the CEL expression that is true of exactly the intents that
// n is true of, and never an error. n has no opaque node.
func renderCEL(n *node) string {
	var b strings.Builder
	writeCEL(&b, n)
	return b.String()
}

func writeCEL(b *strings.Builder, n *node) {
	switch n.kind {
	case nodeAll:
		writeOperands(b, n, " && ", "true")
	case nodeAny:
		writeOperands(b, n, " || ", "false")
	case nodeNot:
		b.WriteByte('!')
		writeOperand(b, n.kids[0])
	default:
		writeLeaf(b, n)
	}
}

func writeOperands(b *strings.Builder, n *node, sep, empty string) {
	if len(n.kids) == 0 {
		b.WriteString(empty)
	}
	for i, k := range n.kids {
		if i > 0 {
			b.WriteString(sep)
		}
		// A leaf is a comparison or, behind a guard, a conjunction.
		if k.kind == nodeLeaf && (n.kind == nodeAll || !k.guarded()) {
			writeLeaf(b, k)
			continue
		}
		writeOperand(b, k)
	}
}

// writeOperand writes n so that it binds tighter than any operator before it.
func writeOperand(b *strings.Builder, n *node) {
	if n.kind == nodeNot || n.kind != nodeLeaf && len(n.kids) == 0 {
		writeCEL(b, n)
		return
	}
	b.WriteByte('(')
	writeCEL(b, n)
	b.WriteByte(')')
}

// writeLeaf writes a leaf behind the guard that keeps a missing field from
// being an error.
func writeLeaf(b *strings.Builder, n *node) {
	f := n.field
	if n.isResource() && n.reads != readsOne {
		writeReadings(b, n)
		return
	}
	guard := celGuard(f)
	if n.op == opExists {
		b.WriteString(guard)
		return
	}
	if guard != "" {
		b.WriteString(guard + " && ")
	}
	ref := fieldRef(f)
	switch f.kind {
	case kindDigits:
		ref = "int(" + ref + ")"
	case kindDecimal:
		fmt.Fprintf(b, "%s(%s, %s) %s 0", fnDecimalCompare, ref, Quote(n.values[0].str), n.op)
		return
	case kindSize:
		ref = fmt.Sprintf("size(%s(%s))", fnItems, ref)
	}
	switch n.op {
	case opEach, opSome:
		fmt.Fprintf(b, "%s(%s).%s(%s, ", fnItems, ref, n.op, itemField)
		writeCEL(b, n.kids[0])
		b.WriteByte(')')
	case opIn:
		fmt.Fprintf(b, "%s in %s", ref, celConstants(f, n.values))
	case opGlob, opResourceGlob, opActionGlob:
		fmt.Fprintf(b, "%s(%s, %s)", n.op, celConstants(f, n.values), ref)
	case opRegex, opContains, opStartsWith, opEndsWith:
		fmt.Fprintf(b, "%s.%s(%s)", ref, n.op, celConstant(f, n.values[0]))
	default:
		fmt.Fprintf(b, "%s %s %s", ref, n.op, celConstant(f, n.values[0]))
	}
}

// writeReadings writes a comparison with the readings of the resource.
func writeReadings(b *strings.Builder, n *node) {
	function, op := fnResourceAny, n.op
	if n.reads == readsEvery {
		function = fnResourceEvery
	}
	if op == opEq {
		op = opIn
	}
	fmt.Fprintf(b, "%s(%s, %s)", function, Quote(op.String()), celConstants(n.field, n.values))
}

// guarded reports whether n is rendered as more than one comparison.
func (n *node) guarded() bool {
	return n.field.kind == kindDigits || n.field.kind == kindDecimal || n.op != opExists && n.field.optional()
}

func fieldRef(f field) string {
	if f.keyed {
		return f.path + "[" + Quote(f.key) + "]"
	}
	return f.path
}

func celGuard(f field) string {
	switch {
	case f.kind == kindDigits:
		text := f
		text.kind = kindString
		guard := fieldRef(f) + ".matches(" + Quote(digits()) + ")"
		if present := celGuard(text); present != "" {
			guard = present + " && " + guard
		}
		return guard
	case f.keyed:
		return Quote(f.key) + " in " + f.path
	case f.inCost():
		return "has(intent.cost)"
	case f.optional():
		return "has(" + f.path + ")"
	}
	return ""
}

// String returns the operator's, method's or function's name in CEL.
func (o operator) String() string {
	return [...]string{
		opEq: "==", opGt: ">", opGte: ">=", opLt: "<", opLte: "<=", opIn: "in", opExists: "has",
		opGlob: fnGlob, opResourceGlob: fnResourceGlob, opActionGlob: fnActionMatches,
		opRegex: "matches", opContains: "contains", opStartsWith: "startsWith", opEndsWith: "endsWith",
		opEach: "all", opSome: "exists",
	}[o]
}

// celConstants writes a list, or its only member where there is one.
func celConstants(f field, values []constant) string {
	if len(values) == 1 {
		return celConstant(f, values[0])
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = celConstant(f, v)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func celConstant(f field, v constant) string {
	switch f.kind {
	case kindInt, kindDigits, kindSize:
		return strconv.FormatInt(v.num, 10)
	case kindTime:
		return "timestamp(" + Quote(v.str) + ")"
	}
	return Quote(v.str)
}

// digits is the regular expression of what CEL's int() reads of a string: a
// decimal integer of 64 bits.
func digits() string {
	const most = "9223372036854775807"
	forms := []string{"[0-9]{1,18}"}
	for i, digit := range []byte(most) {
		if digit > '0' {
			forms = append(forms, fmt.Sprintf("%s[0-%c][0-9]{%d}", most[:i], digit-1, len(most)-1-i))
		}
	}
	return "^(?:[+-]?0*(?:" + strings.Join(append(forms, most), "|") + ")|-0*9223372036854775808)$"
}

// Quote writes s as a string literal of JSON, CEL and Rego alike. What cannot
// be seen is escaped, so that a rendering reads as what it says.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case !unicode.IsPrint(r) && r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
