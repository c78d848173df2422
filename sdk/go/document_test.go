package writ

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTypesMatchTheDocument compares the members of the client's types with the schemas of openapi.yaml, in both ways.
func TestTypesMatchTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]any
	}
	var doc struct {
		Components struct{ Schemas map[string]schema }
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name, own := range map[string]any{
		"ActionIntent": Intent{}, "Cost": Cost{}, "RecordAction": Record{}, "CreateSession": Session{}, // are sent
		"Receipt": Receipt{}, "Problem": Problem{}, "FieldError": FieldError{}, "Approval": Approval{}, "Finding": Finding{}, "Credential": Credential{},
	} {
		want, found := doc.Components.Schemas[name]
		if !found || len(want.Properties) == 0 {
			t.Errorf("the document has no schema %s with members", name)
			continue
		}
		members := membersOf(reflect.TypeOf(own))
		for _, m := range members {
			if _, known := want.Properties[m]; !known && !beside[name+"."+m] {
				t.Errorf("%T has %q, which the schema %s has not", own, m, name)
			}
		}
		for m := range want.Properties {
			if !slices.Contains(members, m) && !left[name+"."+m] {
				t.Errorf("%T lacks %q, which the schema %s has", own, m, name)
			}
		}
	}
}

// left are members that a program does not act upon: what describes a problem, and the bytes of a refused decision.
var left = map[string]bool{
	"Problem.type": true, "Problem.instance": true, "Problem.ok": true,
	"Problem.decision_id": true, "Problem.reasons": true, "Problem.audit_digest": true, "Problem.receipt": true,
	"CreateSession.ttl": true, // OpenSession adds it
}

// beside are members that one Go type has for two schemas, or that a call adds.
var beside = map[string]bool{
	"Finding.reason":          true, // of an approval's
	"ActionIntent.session_id": true, // stands beside the intent in a request
	// A Session is also what the server answers.
	"CreateSession.session_id": true, "CreateSession.status": true, "CreateSession.expires_at": true,
}

func membersOf(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}
