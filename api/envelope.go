package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"writ/engine"
)

// envelope is the member of a body that holds a document. A client that sends the bare
// document gets an unknown field as its first error; hint adds where the field belongs.
type envelope struct {
	name    string
	members []string // of the document, without names that the body has, too
}

func policyEnvelope() envelope { return envelope{"policy", membersOf[engine.ActionPolicy]("")} }

// intentEnvelope is that of an evaluation, whose body has a policy_id of its own.
func intentEnvelope() envelope { return envelope{"intent", membersOf[engine.Intent]("policy_id")} }

// membersOf returns the members of a document but one.
func membersOf[T any](but string) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" && name != but {
			names = append(names, name)
		}
	}
	return names
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
