package rego

import (
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine/condition"
)

// A condition calls writ.items(text) with a metadata value. The function returns the list of the
// items that the milder reading of the value has: see [condition.Value.Items]. No OPA has the
// function. So an exported condition imports a library as writ, and the library looks the text up in
// the readings that the input carries.

// itemsName is the name of the function.
const itemsName = "writ.items"

// itemsBuiltin is its declaration in the capabilities of conditions.
var itemsBuiltin = &ast.Builtin{
	Name:        itemsName,
	Description: "Returns the addresses of a metadata value, and the items that are more than addresses.",
	Decl: types.NewFunction(
		types.Args(types.Named("text", types.S).Description("a metadata value")),
		types.Named("items", types.NewArray(nil, types.S)).Description("the items of the list that text is"),
	),
}

// builtinOf returns the declaration of a built-in function.
func builtinOf(name string) (*ast.Builtin, bool) {
	if name == itemsName {
		return itemsBuiltin, true
	}
	b, ok := ast.BuiltinMap[name]
	return b, ok
}

// functionOf returns the built-in function called name, as conditions call it.
func (m *meters) functionOf(name string) topdown.BuiltinFunc {
	switch name {
	case itemsName:
		return itemsOf
	case ast.ParseNanos.Name:
		return parseNanos
	case ast.GlobMatch.Name:
		return m.matchGlob
	case ast.NetCIDRContainsMatches.Name:
		return containsMatches
	}
	return topdown.GetBuiltin(name)
}

// stepsPerRead is the price of reading a byte of a metadata value for the first time.
const stepsPerRead = 32

// itemsOf implements writ.items. A text that is no metadata value of the intent is an error, because
// the input of an exported condition has the readings of metadata values alone.
func itemsOf(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
	b, ok := bctx.Cancel.(*budget)
	text, isText := args[0].Value.(ast.String)
	switch {
	case !ok:
		return tooMuch() // cannot happen: prepared.ask sets the budget
	case !isText || !b.isMetadata(string(text)):
		return errItems
	}
	v := b.values[string(text)]
	if v == nil {
		if !b.charge(stepsPerRead * len(text)) {
			return tooMuch()
		}
		v = condition.ReadValue(string(text))
		if b.values == nil {
			b.values = make(map[string]*condition.Value)
		}
		b.values[string(text)] = v
	}
	if !b.charge(v.Steps()) {
		return tooMuch()
	}
	return iter(textsTerm(v.Items()))
}

// errItems is the error of a call. It does not show the text.
var errItems = errors.New(itemsName + ": the argument is no metadata value of the intent")

// isMetadata reports whether text is a metadata value of the intent.
func (b *budget) isMetadata(text string) bool {
	for _, value := range b.metadata {
		if value == text {
			return true
		}
	}
	return false
}

// usesItems reports whether a condition calls writ.items. Only the compiler knows whether the name is
// the function's.
func usesItems(source string, l *Libraries) bool {
	if !strings.Contains(source, "items") {
		return false
	}
	c, err := l.Compile(source)
	if err != nil {
		return false // cannot happen: the rule has compiled
	}
	compiled, ok := c.(*sandboxed)
	return ok && compiled.items
}

// callsItems reports whether a compiled module calls writ.items.
func callsItems(m *ast.Module) (found bool) {
	calls(m, func(operator *ast.Term, _ []*ast.Term) { found = found || operator.Value.String() == itemsName })
	return found
}

const (
	// libraryFile is the name of the file that has writ's functions for exported conditions.
	libraryFile = "library.rego"
	// libraryPackage ends the name of its package. libraryAlias is the name by which conditions
	// import it.
	libraryPackage = ".library"
	libraryAlias   = "writ"
)

// writeLibrary writes writ's functions for the conditions of package pkg.
func writeLibrary(pkg string) (File, error) {
	return formatted(libraryFile, `package `+pkg+libraryPackage+`

# METADATA
# description: The addresses of a metadata value, and the items that are more than addresses.
items(text) := input.items[text]
`)
}

// itemsOfMetadata defines what the library looks up: the items of each metadata value.
const itemsOfMetadata = `# What writ.items returns for each metadata value.
metadata_items := {text: items |
	some key, text in input.intent.metadata
	items := [item |
		some element in values[key].elements
		some item in array.concat(element.addresses, element.others)
	]
}`

// inputOfItems is the input's member for a condition in Rego that calls writ.items.
const inputOfItems = `, "items": metadata_items`

// itemsSchema is the schema of that member.
func itemsSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{
		"type": "array", "items": typed("string"),
	}}
}
