package api

import (
	"errors"
	"slices"

	"writ/engine"
)

// wrapper is the member of a body that holds a document. Who sends the document
// itself as the body meets an unknown field first, and is told of the wrapper.
type wrapper struct {
	name    string
	members []string // of the document, as far as the body has none of that name
}

func policyWrapper() wrapper {
	return wrapper{"policy", []string{
		"policy_id", "version", "organization_id", "agent_id", "allowed_action_types", "denied_action_types",
		"allowed_resource_patterns", "blocked_resource_patterns", "max_cost_minor", "currency", "status", "updated_at",
	}}
}

func intentWrapper() wrapper {
	return wrapper{"intent", []string{
		"intent_id", "agent_id", "action_type", "resource", "cost", "metadata", "issued_at",
	}}
}

// hint adds to err, which is of decoding a body, where the field that it names
// belongs, if that is in the wrapper.
func (w wrapper) hint(err error) error {
	var fields *engine.InvalidError
	if !errors.As(err, &fields) || len(fields.Fields) != 1 || !slices.Contains(w.members, fields.Fields[0].Field) {
		return err
	}
	of := fields.Fields[0]
	return invalid(of.Field, "belongs inside %q: send {%q: {%q: …, …}}", w.name, w.name, of.Field)
}
