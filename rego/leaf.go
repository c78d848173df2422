package rego

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
)

// searching returns the function that turns the patterns of a leaf into regular expressions. It
// returns nil if glob.match can match all of the patterns.
func searching(n *condition.Node) (expressions func(string) []string) {
	if !slices.ContainsFunc(n.Texts(), func(pattern string) bool { return !glob.IsSimple(pattern) }) {
		return nil
	}
	if n.Op == condition.ActionGlob {
		return actionExpression
	}
	return glob.PlainExpressions
}

func appendDistinct(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func leaf(n *condition.Node) string {
	f := n.Field
	read := ref(f)
	switch {
	case n.Op == condition.Exists && f.Kind == condition.Digits:
		return fmt.Sprintf("regex.match(%s, %s)", condition.Quote(condition.DigitsExpression()), read)
	case n.Op == condition.Exists && f.Kind == condition.Decimal:
		return fmt.Sprintf("regex.match(%s, %s)", condition.Quote(condition.DecimalExpression()), read)
	case n.Op == condition.Exists && f.ID == condition.CounterValue:
		return "is_number(" + read + ")"
	case n.Op == condition.Exists:
		return read
	case n.Op == condition.InList:
		return condition.InList.Rego(read, listsRule+"["+condition.Quote(n.Values[0].Str)+"]")
	case n.Op == condition.InAddresses:
		return n.Op.Rego(read, addressesRule+"["+condition.Quote(n.Values[0].Str)+"]")
	case n.Op == condition.InNames:
		return n.Op.Rego(read, namesRule+"["+condition.Quote(n.Values[0].Str)+"]")
	case n.Op == condition.In:
		var members []string
		for _, v := range n.Values {
			members = appendDistinct(members, constant(f, v))
		}
		return n.Op.Rego(read, "{"+strings.Join(members, ", ")+"}")
	}
	switch f.Kind {
	case condition.Time:
		read = "time.parse_rfc3339_ns(" + read + ")"
	case condition.Digits, condition.Decimal:
		read = "to_number(" + read + ")"
	}
	return n.Op.Rego(read, constant(f, n.Values[0]))
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func ref(f condition.Field) string {
	switch {
	case f.ID == condition.Resource:
		return paramReading + ".text"
	case f.ID == condition.AgentName:
		return paramReading + ".agent"
	case f.ID == condition.Item && f.Kind == condition.Decimal:
		return paramElement + ".text"
	case f.ID == condition.Item:
		return paramItem
	case f.ID == condition.MetadataValue && identifier.MatchString(f.Key) && !slices.Contains(ast.KeywordsV1[:], f.Key):
		return "input." + f.Path() + "." + f.Key
	case f.ID == condition.MetadataValue || f.ID == condition.CounterValue:
		return "input." + f.Path() + "[" + condition.Quote(f.Key) + "]"
	}
	return "input." + f.Path()
}

func constant(f condition.Field, v condition.Constant) string {
	switch f.Kind {
	case condition.Int, condition.Digits, condition.Size:
		return strconv.FormatInt(v.Num, 10)
	case condition.Decimal:
		return v.Str
	case condition.Time:
		return "time.parse_rfc3339_ns(" + condition.Quote(v.Str) + ")"
	}
	return condition.Quote(v.Str)
}
