package condition

import (
	"errors"
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

// showsForms has parts of the message that shows the four forms.
var showsForms = []string{"one of four forms", `{"action_type":"deploy"`, `{"all":[`, `{"cel":`, `{"rego":`}

func TestDecision_Rules_AnythingElseIsInvalidAndShowsTheForms(t *testing.T) {
	for _, doc := range []string{
		``, `null`, `true`, `5`, `"x"`, `[]`, `{`, `{"a"`, `{} {}`, `{} x`, `action_type == 'deploy'`,
		`{"foo":1}`, `{"cel":"true","action_type":"x"}`, `{"rego":"true","cel":"true"}`,
		`{"all":[{"action_type":"x"}]}`, `{"action_type":"x","all":[]}`,
		`{"$and":[{"field":"action_type","op":"eq","value":"x"}]}`,
		`{"action_type":"x","action_type":"y"}`, `{"metadata.env":{"$eq":"` + "\xff" + `"}}`,
	} {
		t.Run(doc, func(t *testing.T) {
			_, err := Compile(doc, Options{Side: resource.ForBlock})
			wantInvalid(t, err, showsForms...)
		})
	}
}

func TestCondition_Errors(t *testing.T) {
	tests := []struct {
		name string
		doc  string
		want []string
	}{
		{"null", `{"metadata.env":null}`, []string{"at /metadata.env: null", `{"$exists": false}`}},
		{"null in a list", `{"metadata.env":{"$in":["a",null]}}`, []string{"at /metadata.env/$in/1: null"}},
		{"duplicate", `{"metadata.env":"a","metadata.env":"b"}`, []string{"duplicate"}},
		{"duplicate operator", `{"cost.amount_minor":{"$gt":1,"$gt":2}}`, []string{"at /cost.amount_minor", "duplicate"}},
		{"unknown field", `{"cost.amount":1}`, []string{`at /cost.amount: unknown field "cost.amount": did you mean cost.amount_minor?`}},
		{"unknown field like no other", `{"colour":1}`, []string{"at /colour: unknown field", "cost.amount_minor", "metadata.<key>"}},
		{"$or without its dollar", `{"or":[{"action_type":"x"}]}`, []string{`at /or: unknown key "or": did you mean "$or"?`}},
		{"any by another name", `{"or":[{"field":"action_type","op":"eq","value":"x"}]}`, []string{`at /or: unknown key "or": did you mean "any"?`}},
		{"no metadata key", `{"metadata.":"x"}`, []string{"unknown field"}},
		{"no intent.agent.status", `{"intent.agent.status":"active"}`, []string{"unknown field"}},
		{"unknown operator", `{"cost.amount_minor":{"$above":1}}`, []string{`at /cost.amount_minor/$above: unknown operator "$above": did you mean $gt? want one of $eq`}},
		{"$options", `{"resource":{"$regex":"x","$options":"i"}}`, []string{"unknown operator"}},
		{"unknown logical operator", `{"$xor":[{}]}`, []string{`unknown operator "$xor" before a field: want $and`}},
		{"no operators", `{"cost.amount_minor":{}}`, []string{"want at least one operator"}},
		{"sub-document", `{"cost":{"amount_minor":5}}`, []string{`at /cost: a member of the cost is written with its path: "cost.amount_minor": 5`}},
		{"object compared", `{"cost":5}`, []string{"at /cost: cost can only be asked whether it exists"}},
		{"array", `{"action_type":["a"]}`, []string{`{"$in": [...]}`}},
		{"number for a string", `{"agent_id":5}`, []string{"at /agent_id: equality wants a string for agent_id, got a number"}},
		{"number for a string in $gt", `{"agent_id":{"$gt":5}}`, []string{"at /agent_id/$gt: $gt wants a string for agent_id, got a number"}},
		{"exponent for metadata", `{"metadata.n":1e3}`, []string{"at /metadata.n: want a decimal without exponent"}},
		{"number in a text operator", `{"field":"metadata.n","op":"startsWith","value":5}`, []string{"startsWith wants a string, got a number"}},
		{"ordering by a text that is a number", `{"metadata.n":{"$gt":"5000"}}`, []string{"at /metadata.n/$gt: orders as text", "write the number without quotes, 5000"}},
		{"ordering by a text in a tree", `{"field":"metadata.n","op":"lessThan","value":"-1.5"}`, []string{"at /value: orders as text"}},
		{"ordering by a text in CEL", `{"cel":"'10' <= intent.metadata.n"}`, []string{"metadata.n orders as text", `decimal_compare(intent.metadata.n, "10")`}},
		{"ordering items by a text", `{"metadata.n":{"$some":{"$gt":"5"}}}`, []string{"at /metadata.n/$some/$gt: orders as text"}},
		{"ordering metadata by a number in CEL", `{"cel":"intent.metadata.n > 5000"}`, []string{"no matching overload"}},
		{"$every of no metadata", `{"resource":{"$every":["a"]}}`, []string{"at /resource/$every: $every looks at a metadata value as a list, resource is none"}},
		{"$every of a string", `{"metadata.to":{"$every":"a"}}`, []string{"$every wants an array of constants, or operators", "got a string"}},
		{"$some of nothing", `{"metadata.to":{"$some":[]}}`, []string{"$some wants an array of at least one constant"}},
		{"$every within $every", `{"metadata.to":{"$every":{"$some":["a"]}}}`, []string{"$some looks at a metadata value as a list, item is none"}},
		{"$exists of an item", `{"metadata.to":{"$every":{"$exists":true}}}`, []string{"$exists does not go here"}},
		{"$size of a string", `{"metadata.to":{"$size":"2"}}`, []string{`$size wants an integer, or operators such as {"$lte": 3}, got a string`}},
		{"$size of a text", `{"metadata.to":{"$size":{"$gt":"2"}}}`, []string{"$gt wants an integer for metadata.to, got a string"}},
		{"string for a number", `{"cost.amount_minor":{"$gt":"5"}}`, []string{"$gt wants an integer for cost.amount_minor, got a string"}},
		{"boolean", `{"action_type":true}`, []string{"got a boolean"}},
		{"fraction", `{"cost.amount_minor":12.5}`, []string{"want an integer between", "12.5"}},
		{"exponent", `{"cost.amount_minor":1e3}`, []string{"want an integer between", "1e3"}},
		{"too large", `{"cost.amount_minor":9007199254740992}`, []string{"want an integer between"}},
		{"currency", `{"cost.currency":"eur"}`, []string{"three upper-case letters"}},
		{"agent status", `{"agent.status":{"$ne":"paused"}}`, []string{"want active, disabled or unregistered"}},
		{"policy status", `{"policy.status":{"$in":["live"]}}`, []string{"want active, suspended or revoked"}},
		{"upper-case uuid", `{"policy_id":"0B9F7F2E-5A57-4A5E-8F27-6A3F3F0F9A01"}`, []string{"want a UUID in lower case"}},
		{"no time", `{"issued_at":{"$gt":"yesterday"}}`, []string{"want an RFC 3339 time"}},
		{"time out of range", `{"issued_at":{"$gt":"0001-01-01T00:00:00Z"}}`, []string{"between the years"}},
		{"glob of a time", `{"issued_at":{"$glob":"2026*"}}`, []string{"$glob is for strings, issued_at is an RFC 3339 time"}},
		{"glob in $in", `{"action_type":{"$in":["sql.*"]}}`, []string{"compares literally", "use the glob operator"}},
		{"glob in $eq", `{"resource":{"$eq":"prod/**"}}`, []string{"compares literally"}},
		{"$in without a list", `{"metadata.env":{"$in":"prod"}}`, []string{"$in wants an array of at least one constant"}},
		{"$in of nothing", `{"metadata.env":{"$in":[]}}`, []string{"$in wants an array of at least one constant"}},
		{"$exists of a number", `{"cost":{"$exists":1}}`, []string{"$exists wants true or false, got a number"}},
		{"bad glob", `{"resource":{"$glob":"prod/[a"}}`, []string{"at /resource/$glob:"}},
		{"bad glob in a list", `{"resource":{"$glob":["a","prod/{a"]}}`, []string{"at /resource/$glob/1:"}},
		{"no globs", `{"resource":{"$glob":[]}}`, []string{"at least one glob"}},
		{"glob of a number", `{"resource":{"$glob":5}}`, []string{"wants a glob or an array of globs, got a number"}},
		{"implicit bad glob", `{"resource":"prod/[*"}`, []string{"at /resource:"}},
		{"bad regex", `{"resource":{"$regex":"("}}`, []string{"at /resource/$regex: not an RE2 expression", "missing closing )"}},
		{"backreference", `{"resource":{"$regex":"(a)\\1"}}`, []string{"not an RE2 expression"}},
		{"large regex", `{"resource":{"$regex":"(((a{10}){10}){9})*(((a{10}){10}){9})(((a{10}){10}){9})"}}`, []string{"more than 700 instructions"}},
		{"regex of an integer", `{"cost.amount_minor":{"$regex":"5"}}`, []string{"$regex wants a string field"}},
		{"empty $or", `{"$or":[]}`, []string{"at /$or: want an array of at least one condition"}},
		{"$and of a string", `{"$and":["x"]}`, []string{"at /$and/0: want a match object", "got a string"}},
		{"$not of a string", `{"action_type":{"$not":"x"}}`, []string{"at /action_type/$not: want operators"}},

		{"empty all", `{"all":[]}`, []string{"at /all: want an array of at least one condition"}},
		{"all of an object", `{"all":{"field":"cost","op":"exists","value":true}}`, []string{"at /all: want an array"}},
		{"empty node", `{"all":[{}]}`, []string{"at /all/0: want", "got an empty object"}},
		{"not of a list", `{"not":[]}`, []string{"at /not: want", "got an array"}},
		{"two combinations", `{"all":[{"not":{}}],"any":[{}]}`, []string{"does not go beside"}},
		{"leaf without field", `{"op":"eq","value":1}`, []string{`the leaf has no "field"`}},
		{"leaf without op", `{"field":"agent_id","value":"x"}`, []string{`the leaf has no "op"`}},
		{"leaf without value", `{"field":"agent_id","op":"eq"}`, []string{`the leaf has no "value"`}},
		{"leaf with field and fact", `{"field":"agent_id","fact":"agent_id","op":"eq","value":"x"}`, []string{"twice"}},
		{"leaf with a path", `{"fact":"agent_id","operator":"equal","value":"x","path":"$.a"}`, []string{`"path" does not go beside "fact"`}},
		{"leaf field of a number", `{"field":1,"op":"eq","value":"x"}`, []string{"at /field: want a string, got a number"}},
		{"leaf unknown field", `{"field":"foo","op":"eq","value":"x"}`, []string{`at /field: unknown field "foo"`}},
		{"leaf unknown operator", `{"field":"agent_id","op":"is","value":"x"}`, []string{`at /op: unknown operator "is": did you mean eq? want one of eq`}},
		{"leaf operator of form 1", `{"field":"agent_id","op":"$eq","value":"x"}`, []string{"unknown operator"}},
		{"leaf wrong type", `{"not":{"field":"cost.amount_minor","op":"gt","value":"5"}}`, []string{"at /not/value: gt wants an integer"}},
		{"contains of an integer", `{"field":"cost.amount_minor","op":"contains","value":5}`, []string{"contains is for strings, cost.amount_minor is an integer"}},

		{"cel not a string", `{"cel":5}`, []string{"at /cel: want a string that holds the source, got a number"}},
		{"cel empty", `{"cel":" "}`, []string{"at /cel: want a string"}},
		{"cel syntax", `{"cel":"intent.action_type ==\n == 'x'"}`, []string{"at /cel, line 2, column 2: ", "Syntax error"}},
		{"large regexes together", `{"$or":[{"resource":{"$regex":"a{600}"}},{"resource":{"$regex":"b{600}"}}]}`, []string{"at /$or/1/resource/$regex", "more than 700 instructions"}},
		{"cel large regex", `{"cel":"intent.resource.matches('((a{10}){10}){9}b{200}')"}`, []string{"more than 700 instructions"}},
		{"cel large regex for every key", `{"cel":"intent.metadata.exists(k, k.matches('a{40}'))"}`, []string{"more than 700 instructions"}},
		{"cel unknown field", `{"cel":"intent.amount > 5"}`, []string{"at /cel, line 1, column 1: ", "undeclared reference", "intent.cost.amount_minor"}},
		{"cel type", `{"cel":"intent.cost.amount_minor > '5'"}`, []string{"at /cel, line 1, column 26: ", "no matching overload"}},
		{"cel not boolean", `{"cel":"intent.action_type"}`, []string{"at /cel", "want a bool"}},
		{"cel metadata as a number", `{"cel":"intent.metadata.n > 5"}`, []string{"no matching overload"}},
		{"cel bad regex", `{"cel":"intent.resource.matches('(')"}`, []string{"at /cel: not an RE2 expression"}},
		{"cel regex of the caller", `{"cel":"intent.agent_id.matches(intent.cost.currency)"}`, []string{"must be a constant string"}},
		{"cel glob of the caller", `{"cel":"glob(intent.metadata.re, intent.resource)"}`, []string{"must be constants"}},
		{"cel bad glob", `{"cel":"resource_glob('[', intent.resource)"}`, []string{"at /cel"}},
		{"cel too dear", `{"cel":"intent.metadata.all(a, intent.metadata.all(b, intent.metadata.all(c, a + b == c)))"}`, []string{"costs", "at most"}},
		{"rego not a string", `{"rego":["x"]}`, []string{"at /rego: want a string that holds the source, got an array"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.doc, Options{Side: resource.ForAllow})
			wantInvalid(t, err, tt.want...)
		})
	}
}

func TestCondition_EveryMistakeIsReported(t *testing.T) {
	_, err := Compile(`{"foo":1,"cost.amount_minor":{"$gt":"5"},"action_type":7}`, Options{Side: resource.ForAllow})
	var bad *Error
	if !errors.As(err, &bad) || len(bad.Mistakes) != 3 {
		t.Errorf("error = %v, want three mistakes", err)
	}
}

func TestCondition_Limits(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"not":`, n) + `{"field":"cost","op":"exists","value":true}` + strings.Repeat(`}`, n)
	}
	leaves := func(n int) string {
		return `{"$or":[` + strings.TrimSuffix(strings.Repeat(`{},`, n), ",") + `]}`
	}
	braces := strings.TrimSuffix(strings.Repeat(`"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}*",`, 12), ",")
	tests := []struct {
		name string
		doc  string
		want string
	}{
		{"alternatives", `{"metadata.x":{"$glob":["{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}*"]}}`, ""},
		{"alternatives exceeded", `{"metadata.x":{"$glob":[` + braces + `]}}`, "more than 1000 alternatives"},
		{"alternatives exceeded in CEL", `{"cel":` + Quote(`resource_glob([`+braces+`], intent.resource)`) + `}`, "more than 1000 alternatives"},
		{"alternatives exceeded in several lists", `{"$or":[{"resource":{"$glob":[` + braces[:len(braces)/2-1] + `"]}},{"agent_id":{"$glob":[` + braces + `]}}]}`, "more than 1000 alternatives"},
		{"CEL literals", `{"cel":"` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + ` == []"}`, ""},
		{"CEL lists too deep", `{"cel":"` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + ` == []"}`, "nested deeper than 32 levels"},
		{"CEL maps too deep", `{"cel":"` + strings.Repeat("{1:", 200) + "1" + strings.Repeat("}", 200) + ` == {}"}`, "nested deeper than 32 levels"},
		{"CEL brackets in a string", `{"cel":"intent.resource == '` + strings.Repeat("[", 200) + `'"}`, ""},
		{"size", `{"metadata.x":"` + strings.Repeat("x", MaxCondition-len(`{"metadata.x":""}`)) + `"}`, ""},
		{"size exceeded", `{"metadata.x":"` + strings.Repeat("x", MaxCondition) + `"}`, "at most 16384 are allowed"},
		{"depth", nested(maxDepth - 1), ""},
		{"depth exceeded", nested(maxDepth), "nested deeper than 32 levels"},
		{"depth far exceeded", strings.Repeat(`{"not":`, 2000), "nested deeper than 32 levels"},
		{"nodes", leaves(MaxEntries - 2), ""},
		{"nodes exceeded", leaves(MaxEntries), "at most 1000 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(tt.doc, Options{Side: resource.ForAllow})
			if tt.want != "" {
				wantInvalid(t, err, tt.want)
			} else if err != nil {
				t.Errorf("Compile(%.60s…) = %v, want no error", tt.doc, err)
			}
		})
	}
}
