package rego

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Rego cannot map the domain of an address. So the input has the readings of each metadata value
// beside the readings of the resource:
//
//	"values": {"to": {
//		"elements": [{"text": …, "addresses": […], "others": […], "blocked": […]}],
//		"sizes": […], "address": […], "blocked": […]}}
//
// See [condition.Value].

var (
	keyValues, keyElements, keySizes    = ast.StringTerm("values"), ast.StringTerm("elements"), ast.StringTerm("sizes")
	keyAddress, keyAddresses, keyOthers = ast.StringTerm("address"), ast.StringTerm("addresses"),
		ast.StringTerm("others")
)

// valuesTerm returns the readings of metadata values.
func valuesTerm(metadata map[string]string) *ast.Term {
	members := make([][2]*ast.Term, 0, len(metadata))
	for key, text := range metadata {
		v := condition.ReadValue(text)
		elements := make([]*ast.Term, len(v.Elements))
		for i, e := range v.Elements {
			elements[i] = ast.ObjectTerm(ast.Item(keyText, ast.StringTerm(e.Text)),
				ast.Item(keyAddresses, textsTerm(e.Addresses)), ast.Item(keyOthers, textsTerm(e.Others)),
				ast.Item(keyBlocked, textsTerm(e.Blocked)))
		}
		sizes := make([]*ast.Term, len(v.Sizes))
		for i, n := range v.Sizes {
			sizes[i] = integer(n)
		}
		var blocked []string
		for s := range v.Blocked {
			blocked = append(blocked, s)
		}
		members = append(members, ast.Item(ast.StringTerm(key), ast.ObjectTerm(
			ast.Item(keyElements, ast.ArrayTerm(elements...)), ast.Item(keySizes, ast.ArrayTerm(sizes...)),
			ast.Item(keyAddress, textsTerm(v.Address)), ast.Item(keyBlocked, textsTerm(blocked)))))
	}
	return ast.ObjectTerm(members...)
}

func textsTerm(texts []string) *ast.Term {
	terms := make([]*ast.Term, len(texts))
	for i, s := range texts {
		terms[i] = ast.StringTerm(s)
	}
	return ast.ArrayTerm(terms...)
}

// valuesSchema is the schema of input.values.
func valuesSchema() map[string]any {
	list := func(name string) map[string]any { return map[string]any{"type": "array", "items": typed(name)} }
	element := texts("text")
	element["addresses"], element["others"], element["blocked"] = list("string"), list("string"), list("string")
	return map[string]any{"type": "object", "additionalProperties": closed(map[string]any{
		"elements": map[string]any{"type": "array", "items": closed(element)},
		"sizes":    list("integer"), "address": list("string"), "blocked": list("string"),
	})}
}

// valuesOfInput defines the readings of metadata values, and a check that every value has them. The
// readings of the input count only if they are of this value.
var valuesOfInput = `

# The input's readings of the metadata values, if they are of these values. A plain value needs none.
values[key] := value if {
	some key, text in input.intent.metadata
	value := input.values[key]
	value.blocked[0] == text
}

values[key] := plain_value(text) if {
	some key, text in input.intent.metadata
	not input.values[key].blocked[0] == text
}

` + plainValue + `

values_read if not "metadata" in object.keys(input.intent)

values_read if {
	object.keys(values) == object.keys(input.intent.metadata)
	every key, text in input.intent.metadata { value_read(values[key], text) }
}

value_read(value, text) if {
	value.blocked[0] == text
	texts_read(value.blocked)
	texts_read(value.address)
	value.sizes[0] == count(value.elements)
	every size in value.sizes { is_number(size) }
	is_array(value.sizes)
	is_array(value.elements)
	every element in value.elements { element_read(element) }
}

element_read(element) if {
	is_string(element.text)
	count(element.blocked) > 0
	count(element.addresses) + count(element.others) > 0
	every texts in [element.blocked, element.addresses, element.others] { texts_read(texts) }
}

texts_read(texts) if {
	is_array(texts)
	every text in texts { is_string(text) }
}`

// plainValue defines the readings of a plain value: see [condition.NotPlain].
var plainValue = `plain_value(text) := {
	"elements": [{"text": text, "addresses": [], "others": [text], "blocked": [text]}],
	"sizes": [1], "address": [], "blocked": [text, text],
} if {
	is_string(text)
	text != ""
	trim_space(text) == text
	not regex.match(` + condition.Quote("["+regexp.QuoteMeta(condition.NotPlain)+"]") + `, text)
}`

// valueOf returns a reference to the readings of a metadata value.
func valueOf(f condition.Field) string { return "values[" + condition.Quote(f.Key) + "]" }

// quantified renders a leaf that asks every element or some element of a list. It defines a function
// of one element, and a function that calls it for the elements.
func (w *rendering) quantified(n *condition.Node) line {
	w.readsValues = true
	elements := valueOf(n.Field) + ".elements"
	inner := w.defined(n.Kids[0], paramElement)
	lines := []line{{text: "some element in " + elements}, {text: inner + "(element)"}}
	if n.Op == condition.Every {
		lines = []line{{text: fmt.Sprintf("every element in %s { %s(element) }", elements, inner)}}
	}
	return w.call(func(name string) { w.helpers = append(w.helpers, w.body(name, lines)) })
}

// defined defines a function of param that renders n, and returns its name.
func (w *rendering) defined(n *condition.Node, param string) (name string) {
	outer := w.param
	w.param = param
	name = w.next()
	w.define(name, n.Affirm())
	w.param = outer
	return name
}

// read renders a comparison with the readings of a metadata value or of an element.
func (w *rendering) read(n *condition.Node) line {
	w.readsValues = true
	if n.Field.Kind == condition.Size {
		return w.sized(n)
	}
	plain, mail := n.Operands()
	if n.Field.ID == condition.Item {
		return w.readElement(n.Side, plain, mail)
	}
	value, asIs := valueOf(n.Field), w.defined(plain, paramItem)
	read := w.defined(mail, paramItem)
	bodies := [][]line{{{text: asIs + "(" + ref(n.Field) + ")"}}}
	if n.Side == resource.ForBlock {
		bodies = append(bodies, []line{{text: "some item in " + value + ".blocked"}, {text: read + "(item)"}})
	} else {
		bodies = append(bodies, []line{{text: "count(" + value + ".address) > 0"},
			{text: "every item in " + value + ".address { " + read + "(item) }"}})
	}
	return w.call(func(name string) { w.helpers = append(w.helpers, w.function(name, bodies)) })
}

// readElement renders a comparison with the readings of an element, which is the parameter.
func (w *rendering) readElement(side resource.Side, plain, mail *condition.Node) line {
	either := w.defined(condition.Either(plain, mail), paramItem)
	lines := []line{{"some item in element.blocked", true}, {text: either + "(item)"}}
	if side == resource.ForAllow {
		other := w.defined(plain, paramItem)
		lines = []line{{"every item in element.addresses { " + either + "(item) }", true},
			{"every item in element.others { " + other + "(item) }", true}}
	}
	return w.call(func(name string) { w.helpers = append(w.helpers, w.body(name, lines)) })
}

// sized renders a comparison of the number of elements. For a block one way of counting is enough.
func (w *rendering) sized(n *condition.Node) line {
	sizes := valueOf(n.Field) + ".sizes"
	compared := n.Op.Rego("size", strconv.FormatInt(n.Values[0].Num, 10))
	lines := []line{{text: "some size in " + sizes}, {text: compared}}
	if n.Side == resource.ForAllow {
		lines = []line{{text: "every size in " + sizes + " { " + compared + " }"}}
	}
	return w.call(func(name string) { w.helpers = append(w.helpers, w.body(name, lines)) })
}
