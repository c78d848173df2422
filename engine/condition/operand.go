package condition

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

func (p *parser) leaf(f Field, c comparison, v jsonNode) *Node {
	p.nodes++
	if c.op == Exists && (f.ID == Item || f.Kind == Size) {
		return p.wrong(v.at, "%s does not go here: an item and a size always exist", c.name)
	}
	if f.Kind == Object && c.op != Exists {
		return p.wrong(v.at, "%s can only be asked whether it exists; its members are %s.<name>", f.Label(), f.Label())
	}
	n := p.operand(f, c, v)
	if c.negated {
		return Negate(n)
	}
	return n
}

func (p *parser) operand(f Field, c comparison, v jsonNode) *Node {
	switch table[c.op].operand {
	case itemTest:
		return p.quantifier(f, c, v)
	case sizeTest:
		return p.size(f, c, v)
	case truthValue:
		return p.existence(f, c, v)
	case patternList:
		return p.glob(f, c, v)
	case regularExpression:
		return p.regex(f, c, v)
	case constantList:
		return p.membership(f, c, v)
	case oneText:
		if f.Kind != Text {
			return p.wrong(v.at, "%s is for strings, %s is %s", c.name, f.Label(), f.describe())
		}
	}
	f = f.comparedWith(v)
	value, ok := p.constant(f, c, v)
	if !ok {
		return opaque()
	}
	if c.op == Eq {
		return among(f, []Constant{value})
	}
	return Compare(f, c.op, value)
}

// comparedWith returns f with the kind by which it is compared with v. A number compares a
// metadata value as a decimal.
func (f Field) comparedWith(v jsonNode) Field {
	if v.kind == '0' && f.Kind == Text && f.isFree() {
		return f.as(Decimal)
	}
	return f
}

func (p *parser) existence(f Field, c comparison, v jsonNode) *Node {
	switch v.kind {
	case 't':
		return Has(f)
	case 'f':
		return Negate(Has(f))
	}
	return p.wrong(v.at, "%s wants true or false, got %s", c.name, v.describe())
}

// membership parses a list of at least one constant, or a named list.
func (p *parser) membership(f Field, c comparison, v jsonNode) *Node {
	if v.kind == '{' {
		return p.listed(f, c, v)
	}
	if v.kind != '[' || len(v.items) == 0 {
		return p.wrong(v.at, "%s wants an array of at least one constant", c.name)
	}
	var kids []*Node
	values := make([]Constant, 0, len(v.items))
	for _, item := range v.items {
		as := f.comparedWith(item)
		value, ok := p.constant(as, c, item)
		switch {
		case !ok:
			return opaque()
		case as.Kind == Decimal:
			kids = append(kids, Compare(as, Eq, value))
		default:
			values = append(values, value)
		}
	}
	return Either(append(kids, among(f, values))...)
}

// among returns a tree that is true if f equals one of values.
func among(f Field, values []Constant) *Node {
	if f.Kind == Text && len(values) > 1 {
		return Compare(f, In, values...)
	}
	kids := make([]*Node, len(values))
	for i, value := range values {
		kids[i] = Compare(f, Eq, value)
	}
	return Either(kids...)
}

func (p *parser) glob(f Field, c comparison, v jsonNode) *Node {
	items := v.items
	if v.kind != '[' {
		items = []jsonNode{v}
	}
	if f.Kind != Text {
		return p.wrong(v.at, "%s is for strings, %s is %s", c.name, f.Label(), f.describe())
	}
	if len(items) == 0 {
		return p.wrong(v.at, "%s wants at least one glob", c.name)
	}
	values := make([]Constant, 0, len(items))
	for _, item := range items {
		if item.kind != '"' {
			return p.wrong(item.at, "%s wants a glob or an array of globs, got %s", c.name, item.describe())
		}
		if err := p.patterns.glob(f.row().glob, item.text); err != nil {
			return p.wrong(item.at, "%v", err)
		}
		values = append(values, Constant{Str: item.text})
	}
	return Compare(f, f.row().glob, values...)
}

func (p *parser) regex(f Field, c comparison, v jsonNode) *Node {
	if f.Kind != Text || v.kind != '"' {
		return p.wrong(v.at, "%s wants a string field and an RE2 expression, got %s and %s", c.name, f.describe(),
			v.describe())
	}
	if err := p.patterns.regexp(v.text, 1); err != nil {
		return p.wrong(v.at, "%v", err)
	}
	return Compare(f, Regex, Constant{Str: v.text})
}

// constant parses an operand of f.
func (p *parser) constant(f Field, c comparison, v jsonNode) (Constant, bool) {
	var value Constant
	var err error
	switch {
	case (f.Kind == Int || f.Kind == Size) && v.kind == '0':
		value.Num, err = integer(v.text)
	case f.Kind == Decimal && table[c.op].operand == oneText:
		err = fmt.Errorf("%s wants a string, got a number", c.name)
	case f.Kind == Decimal:
		value.Str, err = decimalOperand(v.text)
	case f.Kind != Int && f.Kind != Size && v.kind == '"':
		value.Str, err = v.text, errors.Join(f.admits(c, v.text), p.ordered(f, c, v.text))
	default:
		err = fmt.Errorf("%s wants %s for %s, got %s", c.name, f.describe(), f.Label(), v.describe())
	}
	if err != nil {
		p.add(v.at, "%v", err)
	}
	return value, err == nil
}

// ordered refuses to order a metadata value by a text that looks like a number. It accepts such a
// comparison in a stored rule.
func (p *parser) ordered(f Field, c comparison, s string) error {
	if p.stored || !f.isFree() || c.op < Gt || c.op > Lte || !LooksLikeNumber(s) {
		return nil
	}
	return fmt.Errorf(`orders as text, in which "10" comes before "9": write the number without quotes, %s`,
		strings.TrimSpace(s))
}

// decimalOperand checks the number with which a metadata value is compared.
func decimalOperand(literal string) (string, error) {
	if _, ok := parseDecimal(literal); !ok {
		return "", fmt.Errorf(
			"want a decimal without exponent, of at most %d digits before and after the point, got %s", maxDigits,
			literal,
		)
	}
	return literal, nil
}

func integer(literal string) (int64, error) {
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil || n > MaxInteger || n < -MaxInteger {
		return 0, fmt.Errorf(
			"want an integer between -%d and %d, got %s", int64(MaxInteger), int64(MaxInteger), literal,
		)
	}
	return n, nil
}

// admits refuses a constant that f can never equal: the rule would never match, which is weaker
// than its author meant.
func (f Field) admits(c comparison, s string) error {
	row := f.row()
	switch {
	case f.Kind == Time:
		_, err := ParseTime(s)
		return err
	case c.op != Eq && c.op != In:
	case row.literal && strings.Contains(s, "*"):
		return fmt.Errorf(
			"%s compares literally and %s never contains a *: use the glob operator, and \\* in it for a literal *",
			c.name, f.Label(),
		)
	case row.enum != nil:
		return oneOf(row.enum, s)
	case row.admits != nil:
		return row.admits(s)
	}
	return nil
}

// quantifier parses the operand of $every and $some, which is a list of constants or operators.
func (p *parser) quantifier(f Field, c comparison, v jsonNode) *Node {
	if !p.isList(f, c, v) {
		return opaque()
	}
	var of *Node
	switch v.kind {
	case '[':
		of = p.membership(FieldOf(Item), c, v)
	case '{':
		of = p.operators(FieldOf(Item), v)
	default:
		return p.wrong(v.at, `%s wants an array of constants, or operators such as {"$glob": "*@example.com"}, got %s`,
			c.name, v.describe())
	}
	if c.op == Some {
		return quantified(f, Some, of)
	}
	return Both(Compare(f.as(Size), Gt, Constant{}), quantified(f, Every, of))
}

// size parses the operand of $size: an integer, or operators.
func (p *parser) size(f Field, c comparison, v jsonNode) *Node {
	switch {
	case !p.isList(f, c, v):
		return opaque()
	case v.kind == '0':
		return p.leaf(f.as(Size), comparison{name: c.name, op: Eq}, v)
	case v.kind == '{':
		return p.operators(f.as(Size), v)
	}
	return p.wrong(v.at, `%s wants an integer, or operators such as {"$lte": 3}, got %s`, c.name, v.describe())
}

// isList reports whether f can be read as a list. Only a metadata value can.
func (p *parser) isList(f Field, c comparison, v jsonNode) bool {
	if !f.isMetadata() || f.Kind != Text {
		p.add(v.at, "%s looks at a metadata value as a list, %s is none", c.name, f.Label())
		return false
	}
	return true
}
