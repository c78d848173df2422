package condition

import (
	"maps"
	"slices"
	"strings"
)

// Schema returns the definitions of a JSON Schema (2020-12) for a condition that is a JSON object.
// "condition" is one of the four forms. Its parts are definitions too. Each is at
// "#/$defs/<name>". The schema checks fields, operators and the types of operands. [Compile]
// checks patterns, CEL and Rego.
func Schema() map[string]any {
	defs := object{
		"condition": anyOf(def("match"), def("tree"), def("cel"), def("rego")),
		"match":     matchSchema(),
		"tree":      treeSchema(),
		"cel":       sourceSchema("cel", "An expression over intent, agent and policy that is true or false."),
		"rego": sourceSchema("rego",
			"The body of a rule, or a module whose match is asked, over input.intent, input.agent and input.policy."),
		"conditions": object{"type": "array", "minItems": 1, "items": def("match")},
		"trees":      object{"type": "array", "minItems": 1, "items": def("tree")},
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

// object is an object of a schema.
type object = map[string]any

func def(name string) object { return object{"$ref": "#/$defs/" + name} }

func anyOf(schemas ...any) object { return object{"anyOf": schemas} }

// closed is the schema of an object without other members.
func closed(properties object, required ...string) object {
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func sourceSchema(name, description string) object {
	source := object{"type": "string", "minLength": 1, "maxLength": MaxCondition, "description": description}
	return closed(object{name: source}, name)
}

const metadataNames = `^(intent\.)?metadata\..+$`

func matchSchema() object {
	members := object{"$and": def("conditions"), "$or": def("conditions"), "$nor": def("conditions"),
		"$not": def("match")}
	for f := range namedFields {
		for _, name := range f.names() {
			members[name] = f.schema()
		}
	}
	s := closed(members)
	s["patternProperties"] = object{metadataNames: def("metadata")}
	return s
}

// schema returns the schema of f's value in a match object.
func (f Field) schema() object {
	switch {
	case f.row().enum != nil:
		return anyOf(object{"enum": f.row().enum}, object{"type": "string", "pattern": `\*`},
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

// expectSchema returns the schema of a field's value in a match object. The names of the
// definitions for its kind begin with name.
func expectSchema(name string, f Field) object {
	if f.Kind == Object {
		return def(name + "Operators")
	}
	return anyOf(f.constantSchema(), def(name+"Operators"))
}

func (f Field) constantSchema() object {
	switch {
	case f.Kind == Int || f.Kind == Size:
		return object{"type": "integer", "minimum": -MaxInteger, "maximum": MaxInteger}
	case f.isFree():
		return object{"type": []string{"string", "number"}}
	}
	return object{"type": "string"}
}

// operatorsSchema returns the schema of a field's operators in match objects.
func operatorsSchema(name string, f Field) object {
	members := object{"$not": def(name + "Operators")}
	for s := range spellings {
		if operand := f.operandSchema(s.op); operand != nil && !s.ofTrees {
			members[s.names[0]] = operand
		}
	}
	s := closed(members)
	s["minProperties"] = 1
	return s
}

// operandSchema returns the schema of op's operand, or nil if op is not for f.
func (f Field) operandSchema(op Operator) object {
	text := object{"type": "string"}
	list := func(items object) object {
		return object{"type": "array", "minItems": 1, "items": items}
	}
	form := table[op].operand
	exists := f.ID != Item && f.Kind != Size
	switch {
	case form == truthValue:
		if exists {
			return object{"type": "boolean"}
		}
		return nil
	case f.Kind == Object:
		return nil
	case form == oneConstant:
		return f.constantSchema()
	case form == constantList && f.Kind == Text:
		return anyOf(list(f.constantSchema()), closed(object{fnList: text}, fnList))
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

func treeSchema() object {
	var fieldNames []string
	for f := range namedFields {
		fieldNames = append(fieldNames, f.names()...)
	}
	field := anyOf(object{"enum": fieldNames}, object{"type": "string", "pattern": metadataNames})
	var names []string
	for s := range spellings {
		if s.ofTrees {
			names = append(names, s.names...)
		}
	}
	op := object{"enum": names}
	value := object{"not": object{"type": "null"}}
	leaf := func(fieldKey, opKey string) object {
		return closed(object{fieldKey: field, opKey: op, "value": value}, fieldKey, opKey, "value")
	}
	return anyOf(
		closed(object{"all": def("trees")}, "all"),
		closed(object{"any": def("trees")}, "any"),
		closed(object{"not": def("tree")}, "not"),
		counterSchema("count", nil),
		counterSchema("sum",
			object{"field": object{"const": fields[CostAmount].name},
				"currency": object{"type": "string", "pattern": "^[A-Z]{3}$"}}),
		leaf("field", "op"), leaf("fact", "operator"), leaf("field", "operator"), leaf("fact", "op"),
	)
}

func counterSchema(name string, more object) object {
	required := append([]string{"window"}, slices.Sorted(maps.Keys(more))...)
	properties := object{
		"by": object{"type": "array",
			"items": object{"enum": []string{"agent_id", "session_id"}}},
		"action_type": object{"type": "string", "minLength": 1, "maxLength": MaxName},
		"window":      object{"type": "string", "pattern": "^[0-9]+[smhd]$"},
	}
	maps.Copy(properties, more)
	var compared []any
	for _, op := range []Operator{Gt, Gte, Lt, Lte} {
		short := strings.Fields(table[op].tree)[0]
		compared = append(compared, closed(object{
			name:  closed(properties, required...),
			short: object{"type": "integer", "minimum": -MaxInteger, "maximum": MaxInteger},
		}, name, short))
	}
	return anyOf(compared...)
}
