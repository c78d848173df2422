package condition

import (
	"fmt"
	"slices"
	"strings"
)

// Operator is a comparison of a field. A negated comparison is a Not node. So it is true if the
// field is missing.
type Operator uint8

// The operators.
const (
	Eq Operator = iota
	Gt
	Gte
	Lt
	Lte
	In
	// InList is In of a named list. Match objects and trees write it as $in and in.
	InList
	// InAddresses is InList of an address: it folds the domains of the list.
	InAddresses
	// InNames is InList of a name of the agent: it folds the texts of the list.
	InNames
	Exists
	Glob
	// AddressGlob is a Glob whose "*" ends at an "@" too.
	AddressGlob
	ResourceGlob
	ActionGlob
	// ActionDenied is the glob of denied action types. It also matches other spellings of a denied
	// type. Only the checks of policies use it.
	ActionDenied
	Regex
	// Every and Some test the items of the field's list. Every is true if the field exists and
	// each item satisfies the operand, Some if one item does.
	Every
	Some
	// CountIs is an operator of match objects and trees alone. It is parsed as a comparison of
	// Size.
	CountIs
	// Contains, StartsWith and EndsWith are operators of trees, as json-rules-engine has
	// them: match objects have globs.
	Contains
	StartsWith
	EndsWith
	// IsTrue is for the checks of policies alone.
	IsTrue

	operatorCount
)

// operandForm is the form of an operator's operand.
type operandForm uint8

const (
	oneConstant operandForm = iota
	oneText
	constantList
	patternList
	regularExpression
	truthValue
	itemTest
	sizeTest
)

// operatorRow holds the facts about an operator.
type operatorRow struct {
	// match and tree are the operator's names in match objects and in trees, separated by spaces.
	// Messages show the first name. notMatch and notTree are the names of the operator's negation.
	match, notMatch, tree, notTree string
	operand                        operandForm
	// symbol is the operator, method or function in CEL.
	symbol string
	// cel and rego are the formats of a comparison. %[1]s is the field, %[2]s is the constant or
	// the list.
	cel, rego string
	// order reports whether the comparison is true, given the sign of the order of field and
	// constant. text reports it for the two texts.
	order func(c int) bool
	text  func(field, constant string) bool
}

var table = [operatorCount]operatorRow{
	Eq: {match: "$eq", notMatch: "$ne", tree: "eq equal", notTree: "ne notEqual",
		symbol: "==", cel: infix, rego: infix, order: func(c int) bool { return c == 0 }},
	Gt: {match: "$gt", tree: "gt greaterThan",
		symbol: ">", cel: infix, rego: infix, order: func(c int) bool { return c > 0 }},
	Gte: {match: "$gte", tree: "gte greaterThanInclusive",
		symbol: ">=", cel: infix, rego: infix, order: func(c int) bool {
			return c >= 0
		}},
	Lt: {match: "$lt", tree: "lt lessThan",
		symbol: "<", cel: infix, rego: infix, order: func(c int) bool { return c < 0 }},
	Lte: {match: "$lte", tree: "lte lessThanInclusive",
		symbol: "<=", cel: infix, rego: infix, order: func(c int) bool { return c <= 0 }},
	In: {match: "$in", notMatch: "$nin", tree: "in", notTree: "nin notIn", operand: constantList,
		symbol: "in", cel: infix, rego: infix},
	InList:      {symbol: "in", cel: "%[1]s %[3]s " + fnList + "(%[2]s)", rego: infix},
	InAddresses: {symbol: "in", cel: "%[1]s %[3]s " + fnList + "_addresses(%[2]s)", rego: infix},
	InNames:     {symbol: "in", cel: "%[1]s %[3]s " + fnListNames + "(%[2]s)", rego: infix},
	Exists:      {match: "$exists", tree: "exists", operand: truthValue, symbol: "has"},
	Glob: {match: "$glob", tree: "glob", operand: patternList,
		symbol: "glob", cel: function},
	AddressGlob:  {operand: patternList, symbol: "address_glob", cel: function},
	ResourceGlob: {operand: patternList, symbol: "resource_glob", cel: function},
	ActionGlob:   {operand: patternList, symbol: "action_matches", cel: function},
	ActionDenied: {operand: patternList, symbol: "action_denied", cel: function},
	Regex: {match: "$regex", tree: "regex", operand: regularExpression,
		symbol: "matches", cel: method, rego: "regex.match(%[2]s, %[1]s)"},
	Every:   {match: "$every", tree: "every", operand: itemTest, symbol: "all"},
	Some:    {match: "$some", tree: "some", operand: itemTest, symbol: "exists"},
	CountIs: {match: "$size", tree: "size", operand: sizeTest},
	Contains: {tree: "contains", notTree: "doesNotContain", operand: oneText,
		symbol: "contains", cel: method, rego: "contains(%[1]s, %[2]s)",
		text: strings.Contains},
	StartsWith: {tree: "startsWith", operand: oneText,
		symbol: "startsWith", cel: method, rego: "startswith(%[1]s, %[2]s)",
		text: strings.HasPrefix},
	EndsWith: {tree: "endsWith", operand: oneText,
		symbol: "endsWith", cel: method, rego: "endswith(%[1]s, %[2]s)",
		text: strings.HasSuffix},
	IsTrue: {cel: "%[1]s", rego: "%[1]s"},
}

// How comparisons are written: %[3]s is the symbol.
const (
	infix    = "%[1]s %[3]s %[2]s"
	method   = "%[1]s.%[3]s(%[2]s)"
	function = "%[3]s(%[2]s, %[1]s)"
)

// comparison is an operator as its author spelled it.
type comparison struct {
	name    string
	op      Operator
	negated bool
}

// IsGlob reports whether o takes patterns.
func (o Operator) IsGlob() bool { return table[o].operand == patternList }

// spelling has the names of an operator or of its negation, in match objects or in trees.
type spelling struct {
	op               Operator
	ofTrees, negated bool
	names            []string // the first is shown to authors
}

func spellings(yield func(s spelling) bool) {
	for op := range operatorCount {
		row := &table[op]
		for i, names := range [...]string{row.match, row.notMatch, row.tree, row.notTree} {
			if names != "" && !yield(spelling{op, i >= 2, i%2 == 1, strings.Fields(names)}) {
				return
			}
		}
	}
}

// named returns the operator called name in match objects ("$eq") or in trees ("eq").
func named(name string) (comparison, bool) {
	for s := range spellings {
		if slices.Contains(s.names, name) {
			return comparison{name, s.op, s.negated}, true
		}
	}
	return comparison{}, false
}

// operatorNames returns the first name of each operator of match objects or trees.
func operatorNames(ofTrees bool) (names []string) {
	for s := range spellings {
		if s.ofTrees == ofTrees {
			names = append(names, s.names[0])
		}
	}
	return names
}

// Rego returns a comparison of field with constants in Rego. Both are already in Rego.
func (o Operator) Rego(field, constants string) string {
	return fmt.Sprintf(table[o].rego, field, constants, table[o].symbol)
}
