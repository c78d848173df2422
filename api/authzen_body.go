package api

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/internal/toolcall"
)

// accessBody has the members of an evaluation of AuthZEN, or of several. Members that nobody asks for are ignored, as
// AuthZEN demands.
type accessBody map[string]jsontext.Value

// accessBatch is what a body of evaluations has beyond an evaluation.
type accessBatch struct {
	semantic string
	whole    bool         // the answer has the context of each decision
	items    []accessBody // each with the members that it inherits
}

// readAccess reads a body. The body's memory is not kept.
func readAccess(body []byte) (accessBody, error) {
	if len(body) == 0 {
		return nil, invalid("body", "is empty: want a JSON document")
	}
	var members accessBody
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, refuse(codeInvalidRequest, "The body is not a JSON object, or names a member twice.")
	}
	return members, nil
}

// accessObject returns the members of an object. A problem says what is wrong with the value.
func accessObject(v jsontext.Value) (members accessBody, problem string) {
	switch {
	case v == nil:
		return nil, "is required"
	case json.Unmarshal(v, &members) != nil || members == nil:
		return nil, "must be an object"
	}
	return members, ""
}

func accessArray(v jsontext.Value) (items []jsontext.Value, problem string) {
	if v != nil && (json.Unmarshal(v, &items) != nil || items == nil) {
		return nil, "must be an array"
	}
	return items, ""
}

func accessText(v jsontext.Value) (text, problem string) {
	switch {
	case v == nil:
		return "", "is required"
	case v.Kind() != '"' || json.Unmarshal(v, &text) != nil:
		return "", "must be a string"
	case text == "":
		return "", "must not be empty"
	}
	return text, ""
}

// accessReader makes an intent of an evaluation. It gathers the mistakes of the evaluation.
type accessReader struct {
	bad      fieldErrors
	metadata map[string]string
}

// intent reads the evaluation as an intent. It has no time, and no intent id and policy if the context has none.
func (b accessBody) intent() (*evaluateBody, error) {
	r := accessReader{metadata: make(map[string]string)}
	subject := r.entity("subject", b["subject"], "type", "id")
	action := r.entity("action", b["action"], "name")
	resource := r.entity("resource", b["resource"], "type", "id")
	in := &engine.Intent{
		AgentID: subject[0] + "/" + subject[1], ActionType: action[0],
		Resource: toolcall.EntityResource(resource[0], resource[1]), Metadata: r.metadata,
	}
	if strings.Contains(subject[0], "/") {
		r.bad.add("subject.type", "must not contain a slash: the agent is type/id")
	}
	r.metadata["resource_type"] = resource[0]
	body := &evaluateBody{Intent: in}
	if v, ok := b["context"]; ok {
		r.context(v, body)
	}
	return body, r.bad.err()
}

// entity reads the texts that an entity must have, and its properties.
func (r *accessReader) entity(field string, v jsontext.Value, names ...string) []string {
	texts := make([]string, len(names))
	members, problem := accessObject(v)
	if problem != "" {
		r.bad.add(field, problem)
		return texts
	}
	for i, name := range names {
		if texts[i], problem = accessText(members[name]); problem != "" {
			r.bad.add(field+"."+name, problem)
		}
	}
	if v, ok := members["properties"]; ok {
		properties, problem := accessObject(v)
		if problem != "" {
			r.bad.add(field+".properties", problem)
		}
		for name, v := range properties {
			r.add(field+"."+name, v)
		}
	}
	return texts
}

// context reads the members of the context. A member becomes metadata unless writ itself understands it.
func (r *accessReader) context(v jsontext.Value, body *evaluateBody) {
	members, problem := accessObject(v)
	if problem != "" {
		r.bad.add("context", problem)
	}
	for name, v := range members {
		switch name {
		case "policy_id":
			body.PolicyID = r.uuid("context.policy_id", v)
		case "intent_id":
			body.Intent.IntentID = r.uuid("context.intent_id", v)
		case "approval":
			approval, problem := accessObject(v)
			if problem != "" {
				r.bad.add("context.approval", problem)
				continue
			}
			body.ApprovalID = r.uuid("context.approval.id", approval["id"])
		default:
			r.add("context."+name, v)
		}
	}
}

func (r *accessReader) uuid(field string, v jsontext.Value) string {
	id, problem := accessText(v)
	if problem != "" {
		r.bad.add(field, problem)
		return ""
	}
	id = strings.ToLower(id)
	r.bad.uuid(field, id)
	return id
}

// add adds a value to the metadata: a text as it is, anything else as JSON whose objects are in the order of their
// keys, so that its spelling does not change the intent.
func (r *accessReader) add(key string, v jsontext.Value) {
	if text, problem := accessText(v); v.Kind() == '"' {
		if r.metadata[key] = text; problem == "must be a string" {
			r.bad.add(key, problem)
		}
		return
	}
	if err := v.Format(jsontext.ReorderRawObjects(true)); err != nil {
		r.bad.add(key, "is no JSON") // cannot happen: the whole body was read
	}
	r.metadata[key] = string(v)
}
