package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/internal/toolcall"
)

// TestTool_Check holds which arguments the schemas of both drafts take.
func TestTool_Check(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, c := range []struct {
		schema, args string
		problem      string // a part of it, or nothing
	}{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{}`, "required"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":1}`, "type"},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"b":"x"}`, "no such argument"},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"b":"x"}`, "b"},
		{`{"type":"object","additionalProperties":true}`, `{"b":"x"}`, ""},
		{`{"type":"object","additionalProperties":true}`, `{"b":"x","B":"y"}`, "case"},
		{`{` + draft7 + `"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":0}}}`, `{"a":0}`, "exclusiveMinimum"},
		{`{` + draft7 + `"type":"object","properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"enum":["y"]}}}`, `{"a":"z"}`, "enum"},
		{`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"array","items":{"type":"string"}}}}`, `{"a":[1]}`, "type"},
		{`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, ""},
		{`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, `{"a":1}`, "anyOf"},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":9007199254740993}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`, `{"a":"yx"}`, "pattern"},
		{`{"type":"object","patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"y":"x"}`, "y"},
		{`{}`, `{}`, ""},
		{`{}`, `{"a":1}`, "no such argument"},
	} {
		one, err := newTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(c.schema)})
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		call, err := toolcall.OfServer("s", "t", []byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		err = one.check(call, []byte(c.args))
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s takes %s: %v, want %q", c.schema, c.args, err, c.problem)
		}
	}
	for _, schema := range []string{
		`{"$ref":"file:///etc/passwd"}`, `{"$ref":"https://h.example/s"}`, `{"type":1}`, `{"type":"object","properties":{"a":{"pattern":"("}}}`,
		`[]`, `{"$ref":"#/nowhere"}`,
	} {
		if _, err := newTool(&mcp.Tool{Name: "t", InputSchema: json.RawMessage(schema)}); err == nil {
			t.Errorf("%s is a schema, want an error", schema)
		}
	}
}
