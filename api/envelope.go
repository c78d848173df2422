package api

import (
	"errors"
	"fmt"
	"slices"

	"writ/engine"
	"writ/engine/condition"
)

// envelope is the member of a body that holds a document. Who sends the document
// itself as the body meets an unknown field first, and is told of the envelope.
type envelope struct {
	name    string
	members []string // of the document, as far as the body has none of that name
}

func policyEnvelope() envelope {
	return envelope{"policy", []string{
		"policy_id", "version", "organization_id", "agent_id", "allowed_action_types", "denied_action_types",
		"allowed_resource_patterns", "blocked_resource_patterns", "max_cost_minor", "currency", "status", "updated_at",
	}}
}

func intentEnvelope() envelope {
	members := []string{"cost", "metadata"}
	for _, m := range condition.Members {
		if m.ID != condition.PolicyID {
			members = append(members, m.Name)
		}
	}
	return envelope{"intent", members}
}

// hint adds to err, which is of decoding a body, where the field that it names
// belongs, if that is in the envelope.
func (e envelope) hint(err error) error {
	var fields *engine.InvalidError
	if !errors.As(err, &fields) {
		return err
	}
	var told fieldErrors
	for _, f := range fields.Fields {
		if slices.Contains(e.members, f.Field) {
			f.Message = fmt.Sprintf("belongs inside %q: send {%q: {%q: …, …}}", e.name, e.name, f.Field)
		}
		told.add(f.Field, f.Message)
	}
	return told.err()
}
