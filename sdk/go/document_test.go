package writ

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTypesMatchTheDocument compares the members of the client's types with the schemas of openapi.yaml. A type that
// is sent has every required member, and no type has a member that the document does not have.
func TestTypesMatchTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Required   []string
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
		"Receipt": Receipt{}, "Problem": Problem{}, "FieldError": FieldError{}, "Approval": Approval{}, "Credential": Credential{},
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
		for _, m := range want.Required {
			sent := slices.Contains([]string{"ActionIntent", "Cost", "RecordAction", "CreateSession"}, name)
			if sent && !slices.Contains(members, m) && !beside[name+"."+m] {
				t.Errorf("%T lacks %q, which the schema %s requires", own, m, name)
			}
		}
	}
}

// beside are members that one Go type has for two schemas, or that a call adds.
var beside = map[string]bool{
	"ActionIntent.session_id": true, // stands beside the intent in a request
	"CreateSession.ttl":       true, // OpenSession adds it
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
