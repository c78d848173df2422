package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"writ/engine/resource"
)

// comparison is an operator as forms 1 and 2 spell it.
type comparison struct {
	name    string
	op      operator
	negated bool
}

// leaf parses the comparison of f with v.
func (p *conditionParser) leaf(f field, c comparison, v jsonNode) *node {
	p.nodes++
	if c.op == opExists && (f.name == itemField || f.kind == kindSize) {
		p.add(v.at, "%s does not go here: an item and a size always exist", c.name)
		return opaque()
	}
	if f.kind == kindObject && c.op != opExists {
		p.add(v.at, "%s can only be asked whether it exists; its members are %s.<name>", f.name, f.name)
		return opaque()
	}
	n := p.operand(f, c, v)
	if c.negated {
		return not(n)
	}
	return n
}

func (p *conditionParser) operand(f field, c comparison, v jsonNode) *node {
	switch c.op {
	case opEach, opSome:
		return p.quantifier(f, c, v)
	case opSize:
		return p.size(f, c, v)
	case opExists:
		return p.existence(f, c, v)
	case opGlob:
		return p.glob(f, c, v)
	case opRegex:
		return p.regex(f, c, v)
	case opIn:
		return p.membership(f, c, v)
	case opContains, opStartsWith, opEndsWith:
		if f.kind != kindString {
			p.add(v.at, "%s is for strings, %s is %s", c.name, f.label(), f.describe())
			return opaque()
		}
	}
	f = f.comparedWith(v)
	value, ok := p.constant(f, c, v)
	if !ok {
		return opaque()
	}
	if c.op == opEq {
		return among(f, []constant{value})
	}
	return compare(f, c.op, value)
}

// comparedWith returns f as it is compared with v: a metadata value is read as a
// number where the operand is one.
func (f field) comparedWith(v jsonNode) field {
	if v.kind == '0' && f.kind == kindString && (f.keyed || f.name == itemField) {
		return f.as(kindDecimal)
	}
	return f
}

func (p *conditionParser) existence(f field, c comparison, v jsonNode) *node {
	switch v.kind {
	case 't':
		return exists(f)
	case 'f':
		return not(exists(f))
	}
	p.add(v.at, "%s wants true or false, got %s", c.name, v.describe())
	return opaque()
}

// membership parses a list of constants, of which there is at least one.
func (p *conditionParser) membership(f field, c comparison, v jsonNode) *node {
	if v.kind != '[' || len(v.items) == 0 {
		p.add(v.at, "%s wants an array of at least one constant", c.name)
		return opaque()
	}
	var kids []*node
	values := make([]constant, 0, len(v.items))
	for _, item := range v.items {
		as := f.comparedWith(item)
		value, ok := p.constant(as, c, item)
		switch {
		case !ok:
			return opaque()
		case as.kind == kindDecimal:
			kids = append(kids, compare(as, opEq, value))
		default:
			values = append(values, value)
		}
	}
	return anyOf(append(kids, among(f, values))...)
}

// among is true where f equals one of values.
func among(f field, values []constant) *node {
	if f.kind == kindString && len(values) > 1 {
		return compare(f, opIn, values...)
	}
	kids := make([]*node, len(values))
	for i, value := range values {
		kids[i] = compare(f, opEq, value)
	}
	return anyOf(kids...)
}

// glob parses a glob or a list of globs.
func (p *conditionParser) glob(f field, c comparison, v jsonNode) *node {
	items := v.items
	if v.kind != '[' {
		items = []jsonNode{v}
	}
	if f.kind != kindString {
		p.add(v.at, "%s is for strings, %s is %s", c.name, f.label(), f.describe())
		return opaque()
	}
	if len(items) == 0 {
		p.add(v.at, "%s wants at least one glob", c.name)
		return opaque()
	}
	values := make([]constant, 0, len(items))
	for _, item := range items {
		if item.kind != '"' {
			p.add(item.at, "%s wants a glob or an array of globs, got %s", c.name, item.describe())
			return opaque()
		}
		if err := p.patterns.glob(f.globOperator().String(), item.text); err != nil {
			p.add(item.at, "%v", err)
			return opaque()
		}
		values = append(values, constant{str: item.text})
	}
	return compare(f, f.globOperator(), values...)
}

func (p *conditionParser) regex(f field, c comparison, v jsonNode) *node {
	if f.kind != kindString || v.kind != '"' {
		p.add(v.at, "%s wants a string field and an RE2 expression, got %s and %s", c.name, f.describe(), v.describe())
		return opaque()
	}
	if err := p.patterns.regexp(v.text, 1); err != nil {
		p.add(v.at, "%v", err)
		return opaque()
	}
	return compare(f, opRegex, constant{str: v.text})
}

// constant parses what f is compared with.
func (p *conditionParser) constant(f field, c comparison, v jsonNode) (constant, bool) {
	var value constant
	var err error
	switch {
	case (f.kind == kindInt || f.kind == kindSize) && v.kind == '0':
		value.num, err = integer(v.text)
	case f.kind == kindDecimal && (c.op == opContains || c.op == opStartsWith || c.op == opEndsWith):
		err = fmt.Errorf("%s wants a string, got a number", c.name)
	case f.kind == kindDecimal:
		value.str, err = decimalOperand(v.text)
	case f.kind != kindInt && f.kind != kindSize && v.kind == '"':
		value.str, err = v.text, errors.Join(f.admits(c, v.text), p.ordered(f, c, v.text))
	default:
		err = fmt.Errorf("%s wants %s for %s, got %s", c.name, f.describe(), f.label(), v.describe())
	}
	if err != nil {
		p.add(v.at, "%v", err)
	}
	return value, err == nil
}

// ordered refuses to order a metadata value by a text that must have been meant
// as a number. Stored rules keep what they were accepted with.
func (p *conditionParser) ordered(f field, c comparison, s string) error {
	if p.stored || !f.keyed && f.name != itemField || c.op < opGt || c.op > opLte || !LooksLikeNumber(s) {
		return nil
	}
	return fmt.Errorf(`orders as text, in which "10" comes before "9": write the number without quotes, %s`, strings.TrimSpace(s))
}

// decimalOperand returns the number that a metadata value is compared with.
func decimalOperand(literal string) (string, error) {
	if _, ok := parseDecimal(literal); !ok {
		return "", fmt.Errorf("want a decimal without exponent, of at most %d digits before and after the point, got %s", maxDecimalDigits, literal)
	}
	return literal, nil
}

func integer(literal string) (int64, error) {
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil || n > MaxInteger || n < -MaxInteger {
		return 0, fmt.Errorf("want an integer between -%d and %d, got %s", int64(MaxInteger), int64(MaxInteger), literal)
	}
	return n, nil
}

// admits refuses constants that f can never equal, because a rule that never
// matches weakens what its author meant.
func (f field) admits(c comparison, s string) error {
	equality := c.op == opEq || c.op == opIn
	switch {
	case f.kind == kindTime:
		return checkTime(s)
	case !equality:
	case f.identifies() && strings.Contains(s, "*"):
		return fmt.Errorf("%s compares literally and %s never contains a *: use the glob operator, and \\* in it for a literal *", c.name, f.label())
	case f.name == resourceField:
		if _, err := resource.Read(s); err != nil {
			return fmt.Errorf("no resource equals this: %w", err)
		}
	case f.isUUID() && (!isUUID(s) || strings.ToLower(s) != s):
		return fmt.Errorf("want a UUID in lower case for %s, got %q", f.label(), s)
	case f.name == "cost.currency" && !isCurrency(s):
		return fmt.Errorf("want a currency of three upper-case letters such as EUR, got %q", s)
	case f.name == "agent.status" && s != "active" && s != "disabled" && s != "unregistered":
		return fmt.Errorf("want active, disabled or unregistered, got %q", s)
	case f.name == "policy.status" && s != "active" && s != "suspended" && s != "revoked":
		return fmt.Errorf("want active, suspended or revoked, got %q", s)
	}
	return nil
}

// checkTime refuses what is not an RFC 3339 time, and times that do not fit
// into 64 bits of nanoseconds, in which Rego counts.
func checkTime(s string) error {
	t, err := parseTime(s)
	if err != nil {
		return fmt.Errorf("want an RFC 3339 time such as 2026-01-31T12:00:00Z, got %q", s)
	}
	if !inNanoseconds(t) {
		return fmt.Errorf("want a time between the years 1678 and 2261, got %q", s)
	}
	return nil
}

func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
