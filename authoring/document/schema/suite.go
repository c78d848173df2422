package schema

import (
	"maps"
	"reflect"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine/condition"
)

// suiteFile returns the schema of a suite.
func suiteFile() object {
	path := describe(nonEmpty, "A path, relative to the file.")
	pathOr := func(name string) []any { return []any{path, ref(name)} }
	s := structure(reflect.TypeFor[suite.File](), map[string]object{
		"suite":  describe(nonEmpty, "The name of the suite; the file's where it is left out."),
		"policy": {"anyOf": pathOr("policy"), "description": "A path, or a policy."},
		"policies": {"minItems": 1, "items": object{"anyOf": pathOr("policy")},
			"description": "Every test runs by each."},
		"rules": {"anyOf": []any{path, object{"type": "array", "items": object{"anyOf": pathOr("rule")}}},
			"description": "A path, or an array of paths and rules."},
		"lists": {"additionalProperties": object{"anyOf": []any{listValues, object{"not": object{"type": "null"}}}},
			"propertyNames": listName,
			"description": "The values of the lists that the rules look in, by name; what is no array of texts is " +
				"the list's data."},
		"libraries": describe(nonEmpty,
			"The path, relative to the file, of a directory with the libraries that the rules import."),
		"now":     {"format": "date-time", "description": "The time of the decisions, and the default of issued_at."},
		"intents": {"additionalProperties": ref("fixture")},
		"tests":   {"minItems": 1, "items": ref("test")},
	})
	s["required"] = []string{"tests"}
	defs := condition.Schema()
	defs["policy"], defs["rule"], defs["fixture"], defs["test"] = policy(), rule(), fixture(), test()
	s["$defs"] = defs
	return s
}

// fixture returns the schema of an intent whose members are all optional. A missing member comes
// from the intent that extends names. Null removes a member.
func fixture() object {
	s := intent()
	delete(s, "required")
	properties := s["properties"].(object)
	cost, metadata := properties["cost"].(object), properties["metadata"].(object)
	delete(cost, "required")
	metadata["additionalProperties"] = orNull(metadata["additionalProperties"])
	for name, member := range properties {
		properties[name] = orNull(member)
	}
	properties["extends"] = describe(nonEmpty, "The name of the intent to start from.")
	return s
}

func orNull(s any) object { return object{"anyOf": []any{s, object{"type": "null"}}} }

func session() object {
	members := policy()["properties"].(object)
	narrowed := func(name string) object {
		s := maps.Clone(members[name].(object))
		delete(s, "description")
		s["minItems"] = 1
		return s
	}
	return describe(structure(reflect.TypeFor[suite.Session](), map[string]object{
		"allowed_action_types":      narrowed("allowed_action_types"),
		"allowed_resource_patterns": narrowed("allowed_resource_patterns"),
		"max_cost_minor":            amount,
	}), "Narrows the policy to a task of the agent.")
}

func test() object {
	return structure(reflect.TypeFor[suite.Test](), map[string]object{
		"name":   nonEmpty,
		"intent": describe(nonEmpty, "The name of one of the intents."),
		"set": {"additionalProperties": object{"description": "The value; null removes the member."},
			"description": "Members of the intent that have other values, by their paths; null removes."},
		"each": {"additionalProperties": object{"type": "array", "minItems": 1},
			"description": "A case for each value."},
		"table": describe(structure(reflect.TypeFor[suite.Table](), nil),
			"A case a row. A column is the path of a member of the intent, or a member of the test."),
		"now":     {"format": "date-time", "description": "The time of the decision, in place of the suite's."},
		"session": session(),
		"agent":   {"enum": []string{"active", "disabled", "unregistered"}},
		"counted": {"minimum": 0,
			"description": "What each counter of the rules that counts the intent had come to before."},
		"want": {"enum": []string{"allow", "approval_required", "deny", "refused"},
			"description": "What must be decided, or refused for an intent that is not valid; required, here or as a " +
				"column of the table."},
		"message": {"description": "A part of what is said of an intent that is refused."},
		"codes":   {"description": "The codes of all findings, in any order."},
		"rule":    {"description": "The name or the id of the rule that decides."},
		"error":   {"description": "Whether the condition of a rule cannot be evaluated."},
	})
}
