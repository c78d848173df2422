package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"writ/engine"
)

// envelope is the member of a body that holds a document. A client that sends the bare
// document gets an unknown field as its first error; hint adds where the field belongs.
type envelope struct {
	name    string
	members []string // of the document, without names that the body has, too
}

func policyEnvelope() envelope {
	return envelope{"policy", engine.MemberNames(reflect.TypeFor[engine.ActionPolicy]())}
}

// intentEnvelope is that of an evaluation, whose body has a policy_id of its own.
func intentEnvelope() envelope {
	members := engine.MemberNames(reflect.TypeFor[engine.Intent]())
	return envelope{"intent", slices.DeleteFunc(members, func(name string) bool { return name == "policy_id" })}
}

// hint adds to err, an error of decoding the body, that the unknown field belongs into the
// envelope.
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
