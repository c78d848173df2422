package schema

import (
	"maps"

	"writ/engine/condition"
)

// suite is the schema of what package suite reads. A test holds its members to those of
// that package's types.
func suite() object {
	name := object{"type": "string", "minLength": 1}
	path := describe(name, "A path, relative to the file.")
	defs := condition.Schema()
	defs["policy"], defs["rule"], defs["fixture"], defs["test"] = policy(), rule(), fixture(), test()
	return object{
		"type": "object", "additionalProperties": false, "required": []string{"tests"},
		"properties": object{
			"suite":  describe(name, "The name of the suite; the file's where it is left out."),
			"policy": object{"anyOf": []any{path, ref("policy")}, "description": "A path, or a policy."},
			"policies": object{"type": "array", "minItems": 1, "items": object{"anyOf": []any{path, ref("policy")}},
				"description": "Every test runs by each."},
			"rules": object{"anyOf": []any{path,
				object{"type": "array", "items": object{"anyOf": []any{path, ref("rule")}}}},
				"description": "A path, or an array of paths and rules."},
			"lists": object{"type": "object", "additionalProperties": listValues,
				"propertyNames": listName, "description": "The values of the lists that the rules look in, by name."},
			"now": object{"type": "string", "format": "date-time",
				"description": "issued_at of intents that have none."},
			"intents": object{"type": "object", "additionalProperties": ref("fixture")},
			"tests":   object{"type": "array", "minItems": 1, "items": ref("test")},
		},
		"$defs": defs,
	}
}

// fixture is an intent whose members can all be left out: they are those of extends, and
// null removes.
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
	properties["extends"] = object{"type": "string", "minLength": 1,
		"description": "The name of the intent to start from."}
	return s
}

func orNull(s any) object { return object{"anyOf": []any{s, object{"type": "null"}}} }

func session() object {
	members := policy()["properties"].(object)
	list := func(name string) object {
		s := maps.Clone(members[name].(object))
		delete(s, "description")
		s["minItems"] = 1
		return s
	}
	return object{
		"type": "object", "additionalProperties": false, "description": "Narrows the policy to a task of the agent.",
		"properties": object{
			"allowed_action_types":      list("allowed_action_types"),
			"allowed_resource_patterns": list("allowed_resource_patterns"),
			"max_cost_minor":            object{"type": "integer", "minimum": 0, "maximum": condition.MaxInteger},
		},
	}
}

func test() object {
	value := object{"description": "The value; null removes the member."}
	paths := object{"type": "object", "description": "Members of the intent by their paths, such as cost.amount_minor."}
	wanted := object{"enum": []string{"allow", "approval_required", "deny", "refused"}}
	boolean := object{"type": "boolean"}
	texts := object{"type": "array", "items": object{"type": "string"}}
	set, each := describe(paths, "Members of the intent that have other values, by their paths; null removes."),
		describe(paths, "A case for each value.")
	set["additionalProperties"] = value
	each["additionalProperties"] = object{"type": "array", "minItems": 1}
	return object{
		"type": "object", "additionalProperties": false, "required": []string{"name"},
		"properties": object{
			"name":   object{"type": "string", "minLength": 1},
			"intent": object{"type": "string", "minLength": 1, "description": "The name of one of the intents."},
			"set":    set,
			"each":   each,
			"table": object{
				"type": "object", "additionalProperties": false, "required": []string{"columns", "rows"},
				"properties": object{"columns": texts,
					"rows": object{"type": "array", "items": object{"type": "array"}}},
				"description": "A case a row. A column is the path of a member of the intent, or a member of the test.",
			},
			"session":                   session(),
			"agent":                     object{"enum": []string{"active", "disabled", "unregistered"}},
			"usage_exceeded":            boolean,
			"require_registered_agents": boolean,
			"counted": object{"type": "integer", "minimum": 0,
				"description": "What each counter of the rules that counts the intent had come to before."},
			"want": describe(wanted,
				"What must be decided, or refused for an intent that is not valid; required, here or as a column of "+
					"the table."),
			"message": object{"type": "string", "description": "A part of what is said of an intent that is refused."},
			"codes":   describe(texts, "The codes of all findings, in any order."),
			"rule":    object{"type": "string", "description": "The name or the id of the rule that decides."},
			"error":   describe(boolean, "Whether the condition of a rule cannot be evaluated."),
		},
	}
}
