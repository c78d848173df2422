package rego

import "writ.example/writ/engine/condition"

// closed is the JSON schema of an object that has only the given members. So a misspelt member is a
// mistake.
func closed(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func typed(name string) map[string]any { return map[string]any{"type": name} }

func texts(names ...string) map[string]any {
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = typed("string")
	}
	return properties
}

// intentSchema is the schema of input.intent: the contract's ActionIntent.
func intentSchema() map[string]any {
	p := map[string]any{}
	for _, m := range condition.Members {
		p[m.Name] = typed("string")
	}
	p["cost"] = closed(map[string]any{"amount_minor": typed("integer"), "currency": typed("string")})
	p["metadata"] = map[string]any{"type": "object", "additionalProperties": typed("string")}
	return closed(p)
}

func policySchema() map[string]any {
	p := texts("policy_id", "organization_id", "agent_id", "status")
	p["version"] = typed("integer")
	return closed(p)
}

func conditionSchema() map[string]any {
	return closed(map[string]any{
		"intent":  intentSchema(),
		decidedAt: typed("string"),
		"agent":   closed(texts("id", "status")),
		"policy":  policySchema(),
		"lists":   typed("object"),
	})
}

// querySchema is the schema of the input of a lowered policy: see [Lower].
func querySchema() map[string]any {
	reading := texts("text")
	reading["readers"] = map[string]any{"type": "array", "items": typed("string")}
	readings := map[string]any{"type": "array", "items": closed(reading)}
	return closed(map[string]any{
		"intent":  intentSchema(),
		decidedAt: typed("string"),
		"agent":   namedAgentSchema(),
		"policy":  policySchema(),
		"session": closed(map[string]any{
			"closed": typed("boolean"), "expired": typed("boolean"), "own": typed("boolean"),
		}),
		"lists":                     typed("object"), // the lists that rules in Rego get
		"items":                     itemsSchema(),   // the items that rules in Rego get
		"organization":              closed(map[string]any{"stopped": typed("boolean")}),
		"usage":                     closed(map[string]any{"exceeded": typed("boolean")}),
		"require_registered_agents": typed("boolean"),
		"counters": map[string]any{"type": "object",
			"additionalProperties": map[string]any{"type": []any{"integer", "null"}}},
		"readings":     closed(map[string]any{"blocked": readings, "allowed": readings, "stops": typed("string")}),
		"values":       valuesSchema(),
		"derived_from": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "object"}},
	})
}
