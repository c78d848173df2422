package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// evaluateBody has the form of the body of an evaluate request.
type evaluateBody struct {
	PolicyID string         `json:"policy_id"`
	Intent   *engine.Intent `json:"intent"`
}

const typicalBody = `{"policy_id":"7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d","intent":{` +
	`"intent_id":"123e4567-e89b-12d3-a456-426614174000","policy_id":"7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d",` +
	`"agent_id":"checkout-bot","action_type":"payment.charge","resource":"https://api.stripe.com/v1/charges/ch_3PqR7sT9uV",` +
	`"cost":{"amount_minor":1250,"currency":"EUR"},"metadata":{"env":"prod","order":"A-1009","team":"checkout"},` +
	`"issued_at":"2026-01-31T09:30:00Z"}}`

func TestDecode(t *testing.T) {
	var got evaluateBody
	must.Do(t, engine.Decode([]byte(typicalBody), "", &got))
	want := evaluateBody{PolicyID: corpus.PolicyID, Intent: corpus.AllowedIntent()}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
		t.Errorf("Decode (-want +got):\n%s", diff)
	}
}

func TestDecode_Refuses(t *testing.T) {
	member := func(name, value string) string {
		return strings.Replace(typicalBody, `"issued_at":"2026-01-31T09:30:00Z"`, fmt.Sprintf(`%q:%s`, name, value), 1)
	}
	cost := func(s string) string {
		return strings.Replace(typicalBody, `{"amount_minor":1250,"currency":"EUR"}`, s, 1)
	}
	tests := []struct {
		name, data, field, message string
	}{
		{"unknown member", member("resorce", `"x"`), "intent.resorce", "unknown field"},
		{"another case", member("Issued_At", `"x"`), "intent.Issued_At", "unknown field: did you mean issued_at?"},
		{"duplicate name", member("agent_id", `"x"`), "intent.agent_id", "more than once"},
		{"duplicate in escapes", strings.Replace(typicalBody, `"issued_at"`, `"\u0061gent_id":"x","issued_at"`, 1), "intent.agent_id", "more than once"},
		{"null string", member("issued_at", "null"), "intent.issued_at", "must not be null"},
		{"null object", cost("null"), "intent.cost", "must not be null"},
		{"null in metadata", strings.Replace(typicalBody, `"prod"`, "null", 1), "intent.metadata.env", "must not be null"},
		{"null document", "null", "body", "must not be null"},
		{"number for a string", member("issued_at", "5"), "intent.issued_at", "want a string, got a number"},
		{"string for an object", cost(`"12 EUR"`), "intent.cost", "want an object, got a string"},
		{"array for an object", cost(`[]`), "intent.cost", "want an object, got an array"},
		{"number in metadata", strings.Replace(typicalBody, `"prod"`, "1", 1), "intent.metadata.env", "want a string, got a number"},
		{"object in metadata", strings.Replace(typicalBody, `"prod"`, "{}", 1), "intent.metadata.env", "want a string, got an object"},
		{"string for an integer", cost(`{"amount_minor":"5","currency":"EUR"}`), "intent.cost.amount_minor", "want an integer, got a string"},
		{"fraction", cost(`{"amount_minor":5.0,"currency":"EUR"}`), "intent.cost.amount_minor", "without fraction or exponent"},
		{"exponent", cost(`{"amount_minor":1e3,"currency":"EUR"}`), "intent.cost.amount_minor", "without fraction or exponent"},
		{"too great an integer", cost(`{"amount_minor":9223372036854775808,"currency":"EUR"}`), "intent.cost.amount_minor", "at most 9007199254740991"},
		{"cost without amount", cost(`{"currency":"EUR"}`), "intent.cost.amount_minor", "is required"},
		{"cost without currency", cost(`{"amount_minor":5}`), "intent.cost.currency", "is required"},
		{"unknown member of the cost", cost(`{"amount_minor":5,"currency":"EUR","tax":1}`), "intent.cost.tax", "unknown field: want one of amount_minor, currency"},
		{"trailing data", typicalBody + "{}", "body", "not valid JSON"},
		{"invalid UTF-8", strings.Replace(typicalBody, "prod", "pr\xffod", 1), "", "not valid JSON"},
		{"lone surrogate", strings.Replace(typicalBody, "prod", `\ud800`, 1), "", "not valid JSON"},
		{"truncated", typicalBody[:100], "", "it ends too early"},
		{"empty", "", "body", "is empty"},
		{"blank", " \n", "body", "is empty"},
		{"array", "[]", "body", "want an object, got an array"},
		{"deep", strings.Repeat("[", 20000), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v evaluateBody
			err := engine.Decode([]byte(tt.data), "", &v)
			var inv *engine.InvalidError
			if !errors.As(err, &inv) {
				t.Fatalf("Decode = %v, want an *InvalidError", err)
			}
			got := inv.Fields[0]
			if tt.field != "" && got.Field != tt.field || !strings.Contains(got.Message, tt.message) {
				t.Errorf("Decode = %s: %s, want %s: …%s…", got.Field, got.Message, tt.field, tt.message)
			}
		})
	}
}

func TestDecodeIntent_Normalises(t *testing.T) {
	in, err := engine.DecodeIntent([]byte(`{"intent_id":"123E4567-E89B-12D3-A456-426614174000","policy_id":"7B0C"}`), "intent")
	if err != nil || in.IntentID != "123e4567-e89b-12d3-a456-426614174000" || in.PolicyID != "7b0c" {
		t.Errorf("DecodeIntent = %v, %v, want ids in lower case", in, err)
	}
}

func TestDecodePolicy(t *testing.T) {
	tests := []struct{ name, data, field, message string }{
		{"index", `{"denied_action_types":["a",5]}`, "policy.denied_action_types[1]", "want a string, got a number"},
		{"null in a list", `{"denied_action_types":["a",null]}`, "policy.denied_action_types[1]", "must not be null"},
		{"null list", `{"allowed_action_types":null}`, "policy.allowed_action_types", "must not be null"},
		{"string for a list", `{"allowed_action_types":"*"}`, "policy.allowed_action_types", "want an array, got a string"},
		{"time", `{"updated_at":"yesterday"}`, "policy.updated_at", "RFC 3339"},
		{"number for a time", `{"updated_at":5}`, "policy.updated_at", "RFC 3339"},
		{"misspelt", `{"blocked_resource_pattern":["**"]}`, "policy.blocked_resource_pattern", "unknown field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := engine.DecodePolicy([]byte(tt.data), "policy")
			var inv *engine.InvalidError
			if !errors.As(err, &inv) || inv.Fields[0].Field != tt.field || !strings.Contains(inv.Fields[0].Message, tt.message) {
				t.Errorf("DecodePolicy = %v, want %s: …%s…", err, tt.field, tt.message)
			}
		})
	}
	if p, err := engine.DecodePolicy([]byte(`{"allowed_action_types":[]}`), "policy"); err != nil || p.AllowedActionTypes == nil {
		t.Errorf("DecodePolicy of an empty list = %v, %v, want it present", p, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(typicalBody))
	f.Add([]byte(`{"intent":{"cost":{"amount_minor":1e9}}}`))
	f.Add([]byte(`{"intent":null,"\u0069ntent":{}}`))
	policy := mustCompile(f, corpus.ReferencePolicy())
	f.Fuzz(func(t *testing.T, data []byte) {
		var v evaluateBody
		err := engine.Decode(data, "", &v)
		if err == nil && v.Intent != nil {
			v.Intent.Normalize()
			err = v.Intent.Validate()
		}
		var inv *engine.InvalidError
		if err != nil && (!errors.As(err, &inv) || len(inv.Fields) == 0 || inv.Fields[0].Field == "") {
			t.Fatalf("error %v names no field", err)
		}
		if err != nil || v.Intent == nil {
			return
		}
		for _, finding := range engine.Evaluate(policy, nil, &engine.Input{Intent: v.Intent}).Findings {
			if finding.Code == engine.CodeCheckError || finding.Code == engine.CodeResourceUnreadable {
				t.Fatalf("a valid intent could not be evaluated: %s", finding.Reason)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(typicalBody)
	b.ReportAllocs()
	for b.Loop() {
		var v evaluateBody
		must.Do(b, engine.Decode(data, "", &v))
	}
}

// TestDecision_Errors_EveryInvalidMemberIsNamed checks that a 400 names every invalid member and
// not only the first unknown one.
func TestDecision_Errors_EveryInvalidMemberIsNamed(t *testing.T) {
	tests := []struct {
		name, data string
		want       []string
	}{
		{"unknown, of the wrong type, null and twice", `{"polcy_id":"x","intent":{"agent_id":5,"resorce":"a","cost":{"amount_minor":"1","tax":2},
			"metadata":{"a":1,"b":null,"c":"d"},"issued_at":null,"action_type":"x","action_type":"y"},"extra":1}`, []string{
			"polcy_id", "intent.agent_id", "intent.resorce", "intent.cost.amount_minor", "intent.cost.tax", "intent.cost.currency",
			"intent.metadata.a", "intent.metadata.b", "intent.issued_at", "intent.action_type", "extra",
		}},
		{"a member that lacks another", `{"intent":{"resorce":"a","cost":{"amount_minor":1}}}`, []string{"intent.resorce", "intent.cost.currency"}},
		{"of what is no JSON, the first mistake", `{"resorce":1,"intent":{`, []string{"resorce"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var v evaluateBody
			if diff := cmp.Diff(tt.want, fields(t, engine.Decode([]byte(tt.data), "", &v))); diff != "" {
				t.Errorf("Decode names other fields (-want +got):\n%s", diff)
			}
		})
	}
	_, err := engine.DecodePolicy([]byte(`{"denied_action_types":[1,"a",null],"blocked_resource_pattern":[],"version":"1","updated_at":"now"}`), "policy")
	want := []string{"policy.denied_action_types[0]", "policy.denied_action_types[2]", "policy.blocked_resource_pattern", "policy.version", "policy.updated_at",
		"policy.policy_id", "policy.organization_id", "policy.agent_id", "policy.allowed_action_types", "policy.status"}
	if diff := cmp.Diff(want, fields(t, err)); diff != "" {
		t.Errorf("DecodePolicy names other fields (-want +got):\n%s", diff)
	}
	// Checks run on the members that fit. Their findings count only for members that are not
	// refused.
	var in engine.Intent
	data := `{"resorce":"a","agent_id":"x","cost":{"amount_minor":"1","currency":"EUR"},"metadata":{"a":"b","c":1}}`
	found := new(engine.InvalidError)
	for _, field := range []string{"cost", "cost.amount_minor", "cost.currency", "resource", "metadata.c.d"} {
		found.Fields = append(found.Fields, engine.FieldError{Field: field, Message: "is wrong"})
	}
	err = engine.Decode([]byte(data), "", &in, func() error { return found })
	if diff := cmp.Diff([]string{"resorce", "cost.amount_minor", "metadata.c", "cost.currency", "resource"}, fields(t, err)); diff != "" {
		t.Errorf("Decode with a check names other fields (-want +got):\n%s", diff)
	}
	if in.AgentID != "x" || in.Cost.Currency != "EUR" || in.Metadata["a"] != "b" {
		t.Errorf("Decode left %+v, want what fits", in)
	}
	if err := engine.Decode([]byte(`{"agent_id":"x"}`), "", &in, func() error { return found }); err != nil {
		t.Errorf("Decode of what fits = %v, want no check to be run", err)
	}
	if err := engine.Decode([]byte(`{"x":{`+strings.Repeat(`"a":1,`, 1000)+`"b":1}}`), "", &evaluateBody{}); len(fields(t, err)) > 60 {
		t.Errorf("Decode names %d fields", len(fields(t, err)))
	}
}
