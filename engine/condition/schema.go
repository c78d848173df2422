package condition

import (
	"maps"
	"slices"
	"strings"
)

// Schema returns the definitions of a JSON Schema (2020-12) that describe a condition
// written as an object: "condition", which is one of the four forms, and what it is made
// of, each to be found at "#/$defs/<name>". They know fields, operators and the types of
// operands; what patterns, CEL and Rego say is for [Compile].
func Schema() map[string]any {
	defs := map[string]any{
		"condition": anyOf(def("match"), def("tree"), def("cel"), def("rego")),
		"match":     matchSchema(),
		"tree":      treeSchema(),
		"cel":       sourceSchema("cel", "An expression over intent, agent and policy that is true or false."),
		"rego": sourceSchema("rego",
			"The body of a rule, or a module whose match is asked, over input.intent, input.agent and input.policy."),
		"conditions": map[string]any{"type": "array", "minItems": 1, "items": def("match")},
		"trees":      map[string]any{"type": "array", "minItems": 1, "items": def("tree")},
	}
	for name, f := range map[string]Field{
		"text": FieldOf(AgentID), "integer": FieldOf(CostAmount), "time": FieldOf(IssuedAt), "object": FieldOf(Cost),
		"metadata": MetadataKey("key"), "item": FieldOf(Item), "size": FieldOf(CostAmount).as(Size),
	} {
		defs[name] = expectSchema(name, f)
		defs[name+"Operators"] = operatorsSchema(name, f)
	}
	return defs
}

func def(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

func anyOf(schemas ...any) map[string]any { return map[string]any{"anyOf": schemas} }

// closed is the schema of an object with these members.
func closed(properties map[string]any, required ...string) map[string]any {
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func sourceSchema(name, description string) map[string]any {
	source := map[string]any{"type": "string", "minLength": 1, "maxLength": MaxCondition, "description": description}
	return closed(map[string]any{name: source}, name)
}

const metadataNames = `^(intent\.)?metadata\..+$`

func matchSchema() map[string]any {
	members := map[string]any{"$and": def("conditions"), "$or": def("conditions"), "$nor": def("conditions"),
		"$not": def("match")}
	for id := range MetadataValue {
		if f := FieldOf(id); f.row().name != "" {
			for _, name := range f.names() {
				members[name] = f.schema()
			}
		}
	}
	s := closed(members)
	s["patternProperties"] = map[string]any{metadataNames: def("metadata")}
	return s
}

// names are what match objects and trees call f.
func (f Field) names() []string {
	name := f.row().name
	if strings.HasPrefix(f.row().path, "intent.") {
		return []string{name, "intent." + name}
	}
	return []string{name}
}

// schema is that of what a match object says of f.
func (f Field) schema() map[string]any {
	switch {
	case f.row().enum != nil:
		return anyOf(map[string]any{"enum": f.row().enum}, map[string]any{"type": "string", "pattern": `\*`},
			def("textOperators"))
	case f.Kind == Int:
		return def("integer")
	case f.Kind == Time:
		return def("time")
	case f.Kind == Object:
		return def("object")
	}
	return def("text")
}

// expectSchema is that of what a match object says of a kind of field.
func expectSchema(name string, f Field) map[string]any {
	if f.Kind == Object {
		return def(name + "Operators")
	}
	return anyOf(f.constantSchema(), def(name+"Operators"))
}

func (f Field) constantSchema() map[string]any {
	switch {
	case f.Kind == Int || f.Kind == Size:
		return map[string]any{"type": "integer", "minimum": -MaxInteger, "maximum": MaxInteger}
	case f.isFree():
		return map[string]any{"type": []string{"string", "number"}}
	}
	return map[string]any{"type": "string"}
}

// operatorsSchema is that of the operators of a kind of field in match objects.
func operatorsSchema(name string, f Field) map[string]any {
	members := map[string]any{"$not": def(name + "Operators")}
	for op := range operatorCount {
		row := &table[op]
		operand := f.operandSchema(op)
		for _, names := range []string{row.match, row.notMatch} {
			if names != "" && operand != nil {
				members[names] = operand
			}
		}
	}
	s := closed(members)
	s["minProperties"] = 1
	return s
}

// operandSchema is that of the operand of op, nil where op is none of f.
func (f Field) operandSchema(op Operator) map[string]any {
	text := map[string]any{"type": "string"}
	list := func(items map[string]any) map[string]any {
		return map[string]any{"type": "array", "minItems": 1, "items": items}
	}
	form := table[op].operand
	exists := f.ID != Item && f.Kind != Size
	switch {
	case form == truthValue:
		if exists {
			return map[string]any{"type": "boolean"}
		}
		return nil
	case f.Kind == Object:
		return nil
	case form == oneConstant:
		return f.constantSchema()
	case form == constantList && f.Kind == Text:
		return anyOf(list(f.constantSchema()), closed(map[string]any{fnList: text}, fnList))
	case form == constantList:
		return list(f.constantSchema())
	case form == patternList && f.Kind == Text:
		return anyOf(text, list(text))
	case (form == regularExpression || form == oneText) && f.Kind == Text:
		return text
	case form == itemTest && f.isMetadata():
		return anyOf(list(FieldOf(Item).constantSchema()), def("itemOperators"))
	case form == sizeTest && f.isMetadata():
		return anyOf(f.as(Size).constantSchema(), def("sizeOperators"))
	}
	return nil
}

func treeSchema() map[string]any {
	var fieldNames []string
	for id := range MetadataValue {
		if f := FieldOf(id); f.row().name != "" {
			fieldNames = append(fieldNames, f.names()...)
		}
	}
	field := anyOf(map[string]any{"enum": fieldNames}, map[string]any{"type": "string", "pattern": metadataNames})
	var names []string
	for i := range table {
		names = slices.Concat(names, strings.Fields(table[i].tree), strings.Fields(table[i].notTree))
	}
	op := map[string]any{"enum": names}
	value := map[string]any{"not": map[string]any{"type": "null"}}
	leaf := func(fieldKey, opKey string) map[string]any {
		return closed(map[string]any{fieldKey: field, opKey: op, "value": value}, fieldKey, opKey, "value")
	}
	return anyOf(
		closed(map[string]any{"all": def("trees")}, "all"),
		closed(map[string]any{"any": def("trees")}, "any"),
		closed(map[string]any{"not": def("tree")}, "not"),
		counterSchema("count", nil),
		counterSchema("sum",
			map[string]any{"field": map[string]any{"const": fields[CostAmount].name},
				"currency": map[string]any{"type": "string", "pattern": "^[A-Z]{3}$"}}),
		leaf("field", "op"), leaf("fact", "operator"), leaf("field", "operator"), leaf("fact", "op"),
	)
}

func counterSchema(name string, more map[string]any) map[string]any {
	required := append([]string{"window"}, slices.Sorted(maps.Keys(more))...)
	properties := map[string]any{
		"by": map[string]any{"type": "array",
			"items": map[string]any{"enum": []string{"agent_id", "session_id"}}},
		"action_type": map[string]any{"type": "string", "minLength": 1, "maxLength": MaxName},
		"window":      map[string]any{"type": "string", "pattern": "^[0-9]+[smhd]$"},
	}
	maps.Copy(properties, more)
	var compared []any
	for _, op := range []Operator{Gt, Gte, Lt, Lte} {
		short := strings.Fields(table[op].tree)[0]
		compared = append(compared, closed(map[string]any{
			name:  closed(properties, required...),
			short: map[string]any{"type": "integer", "minimum": -MaxInteger, "maximum": MaxInteger},
		}, name, short))
	}
	return anyOf(compared...)
}
