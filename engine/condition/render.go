package condition

import (
	"fmt"
	"strconv"
	"strings"

	"writ.example/writ/engine/resource"
)

// CEL returns a CEL expression that is true for the same intents as n. n must not have an opaque
// node.
func (n *Node) CEL() string {
	var b strings.Builder
	writeCEL(&b, n)
	return b.String()
}

func writeCEL(b *strings.Builder, n *Node) {
	switch n.Kind {
	case All:
		writeOperands(b, n, " && ", "true")
	case Any:
		writeOperands(b, n, " || ", "false")
	case Not:
		writeNegation(b, n.Kids[0])
	default:
		writeLeaf(b, n, celGuard(n))
	}
}

// writeOperands writes the operands of a conjunction or a disjunction. An operand that tests
// whether a field exists guards the other operands.
func writeOperands(b *strings.Builder, n *Node, sep, empty string) {
	if len(n.Kids) == 0 {
		b.WriteString(empty)
	}
	guards := map[string]bool{}
	for _, k := range n.Kids {
		if n.Kind == Any && k.Kind == Not {
			k = k.Kids[0]
		} else if n.Kind == Any {
			continue
		}
		if k.Kind == Leaf && k.Op == Exists {
			guards[presenceOf(k.Field)] = true
		}
	}
	for i, k := range n.Kids {
		if i > 0 {
			b.WriteString(sep)
		}
		if k.Kind != Leaf {
			writeOperand(b, k)
			continue
		}
		guard := celGuard(k)
		if guards[guard] {
			guard = ""
		}
		// The CEL of a leaf is one comparison. With a guard or for Digits it is a conjunction.
		many := guard != "" || k.Op == Exists && k.Field.Kind == Digits
		if n.Kind == All || !many {
			writeLeaf(b, k, guard)
			continue
		}
		writeOperand(b, k)
	}
}

// writeOperand writes n, in parentheses if the operator before it would bind tighter.
func writeOperand(b *strings.Builder, n *Node) {
	if n.Kind == Not || n.Kind != Leaf && len(n.Kids) == 0 || isCall(n) {
		writeCEL(b, n)
		return
	}
	b.WriteByte('(')
	writeCEL(b, n)
	b.WriteByte(')')
}

func writeNegation(b *strings.Builder, n *Node) {
	if n.Kind == Leaf && n.Op == Eq && n.Field.Kind == Text && n.Side == 0 && !n.Guarded() {
		fmt.Fprintf(b, "%s != %s", fieldRef(n.Field), celConstants(n.Field, n.Values))
		return
	}
	b.WriteByte('!')
	writeOperand(b, n)
}

func isCall(n *Node) bool {
	if n.Kind != Leaf || n.Guarded() {
		return false
	}
	switch row := &table[n.Op]; {
	case n.isResource() && n.Side != 0, n.IsRead(), n.AsksNames(), n.Op == IsTrue:
		return true
	case n.Op == Exists:
		return !n.Field.isKeyed()
	default:
		return row.cel == method || row.cel == function
	}
}

// writeLeaf writes a leaf after its guard. Because of the guard a missing field is not an error.
func writeLeaf(b *strings.Builder, n *Node, guard string) {
	f := n.Field
	if n.isResource() && n.Side != 0 {
		writeReadings(b, n)
		return
	}
	if n.Op == Exists {
		b.WriteString(presenceOf(f))
		return
	}
	if guard != "" {
		b.WriteString(guard + " && ")
	}
	ref, row := fieldRef(f), &table[n.Op]
	if n.IsRead() {
		writeRead(b, n)
		return
	}
	switch f.Kind {
	case Digits:
		ref = "int(" + ref + ")"
	case Decimal:
		fmt.Fprintf(b, "%s(%s, %s) %s 0", fnDecimalCompare, ref, Quote(n.Values[0].Str), row.symbol)
		return
	}
	if n.AsksNames() {
		fmt.Fprintf(b, "%s.%s(%s, ", ref, row.symbol, fields[Item].path)
		writeCEL(b, n.Kids[0])
		b.WriteByte(')')
		return
	}
	if n.Op == Every || n.Op == Some {
		fmt.Fprintf(b, "%s(%s).%s(%s, ", fnElements, ref, row.symbol, fields[Item].path)
		writeCEL(b, n.Kids[0])
		b.WriteByte(')')
		return
	}
	constants := celConstants(f, n.Values)
	if n.Op == In && len(n.Values) == 1 {
		constants = "[" + constants + "]"
	}
	fmt.Fprintf(b, row.cel, ref, constants, row.symbol)
}

// fnResource has the functions for the readings of the resource, by side. Only the CEL of match
// objects and trees calls them.
var fnResource = [...]string{resource.ForBlock: "resource_any", resource.ForAllow: "resource_every"}

// writeReadings writes a comparison with the readings of the resource.
func writeReadings(b *strings.Builder, n *Node) {
	op := n.Op
	if op == Eq {
		op = In
	}
	fmt.Fprintf(b, "%s(%s, %s)", fnResource[n.Side], Quote(table[op].symbol), celConstants(n.Field, n.Values))
}

// fnElements cuts a metadata value into its elements. fnRead compares readings: of a whole value under
// false, of an element under true. fnSize compares the number of elements. The last two have a function
// for each side. Only the CEL of match objects and trees calls these functions.
const fnElements = "elements"

var fnRead = map[bool][]string{
	false: {resource.ForBlock: "value_any", resource.ForAllow: "value_every"},
	true:  {resource.ForBlock: "item_any", resource.ForAllow: "item_every"},
}

var fnSize = [...]string{resource.ForBlock: "size_any", resource.ForAllow: "size_every"}

// writeRead writes a comparison with the readings of a metadata value or of an item.
func writeRead(b *strings.Builder, n *Node) {
	name, op := fnRead[n.Field.ID == Item][n.Side], table[n.Op].symbol
	switch {
	case n.Field.Kind == Size:
		name = fnSize[n.Side]
	case n.Op == InList:
		op = "in " + fnList
	}
	fmt.Fprintf(b, "%s(%s, %s, %s)", name, Quote(op), celConstants(n.Field, n.Values), fieldRef(n.Field))
}

// Guarded reports whether the rendering of n has more than one comparison.
func (n *Node) Guarded() bool {
	return n.Field.Kind == Digits || n.Field.Kind == Decimal || n.Op != Exists && n.Field.Optional()
}

func fieldRef(f Field) string {
	if f.isKeyed() {
		return f.Path() + "[" + Quote(f.Key) + "]"
	}
	return f.Path()
}

// celGuard returns the test of existence that a leaf needs. It is empty if the field always
// exists.
func celGuard(n *Node) string {
	if n.Op == Exists || n.isResource() {
		return ""
	}
	return presenceOf(n.Field)
}

// presenceOf returns a test whether a field exists and can be read as its kind. It is empty if the
// field always exists.
func presenceOf(f Field) string {
	switch {
	case f.Kind == Digits:
		guard := fieldRef(f) + ".matches(" + Quote(DigitsExpression()) + ")"
		if present := presenceOf(f.as(Text)); present != "" {
			guard = present + " && " + guard
		}
		return guard
	case f.isKeyed():
		return Quote(f.Key) + " in " + f.Path()
	case f.Optional():
		return "has(" + fields[f.row().owner].path + ")"
	}
	return ""
}

// celConstants writes a list of constants, or only the constant if there is one.
func celConstants(f Field, values []Constant) string {
	if len(values) == 1 {
		return celConstant(f, values[0])
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = celConstant(f, v)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func celConstant(f Field, v Constant) string {
	switch f.Kind {
	case Int, Digits, Size:
		return strconv.FormatInt(v.Num, 10)
	case Time:
		return "timestamp(" + Quote(v.Str) + ")"
	}
	return Quote(v.Str)
}

// DigitsExpression returns the regular expression of the strings that CEL's int() reads: decimal
// integers of 64 bits.
func DigitsExpression() string {
	const most = "9223372036854775807"
	forms := []string{"[0-9]{1,18}"}
	for i, digit := range []byte(most) {
		if digit > '0' {
			forms = append(forms, fmt.Sprintf("%s[0-%c][0-9]{%d}", most[:i], digit-1, len(most)-1-i))
		}
	}
	return "^(?:[+-]?0*(?:" + strings.Join(append(forms, most), "|") + ")|-0*9223372036854775808)$"
}
