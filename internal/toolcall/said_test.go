package toolcall_test

import (
	"fmt"
	"testing"

	"writ.example/writ/internal/toolcall"
)

// TestParseSaid holds what is read of the user's words and of what calls returned.
func TestParseSaid(t *testing.T) {
	after := func(response string) string {
		return `{"session_id":"s","hook_event_name":"PostToolUse","cwd":"/w","tool_name":"mcp__a__b","tool_response":` + response + `}`
	}
	for in, want := range map[string]string{
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Write to Ana"}`: `s "Write to Ana" []`,
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":""}`:             `s "" []`,
		after(`"text"`):         `s "" ["text"]`,
		after(`{"stdout":"a"}`): `s "" [{"stdout":"a"}]`,
		after(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`):              `s "" ["a" "b"]`,
		after(`[{"type":"text","text":"a"},{"type":"resource_link","uri":"u"}]`):      `s "" ["a" {"type":"resource_link","uri":"u"}]`,
		after(`[{"type":"text","text":1}]`):                                           `s "" [{"type":"text","text":1}]`,
		after(`{"content":[{"type":"text","text":"a"}],"structuredContent":{"b":1}}`): `s "" ["a" {"b":1}]`,
		after(`{"content":"a"}`):                                                      `s "" [{"content":"a"}]`,
		after(`[1,2]`):                                                                `s "" [[1,2]]`,
		after(`[]`):                                                                   `s "" []`,
		after(`null`):                                                                 `s "" []`,
		`{"session_id":"s","hook_event_name":"PostToolUseFailure","tool_name":"T","error":"no"}`: `s "" ["no"]`,
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":null}`:                  "prompt: is missing: want the user's words",
		`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":["a"]}`:                 "prompt: want a string",
		`{"hook_event_name":"UserPromptSubmit","prompt":"a"}`:                                    "session_id: is missing: there is no session to keep this of",
		`{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"T"}`:                      "hook_event_name: want PostToolUse or PostToolUseFailure",
		`{"session_id":"s","session_id":"t"}`:                                                    `the call is not one JSON object: jsontext: duplicate object member name "session_id"`,
	} {
		said, err := toolcall.ParseSaid(toolcall.Claude, []byte(in))
		got := fmt.Sprintf("%s %q %s", said.Session, said.Words, said.Results)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("ParseSaid(%s) = %s, want %s", in, got, want)
		}
	}
}

// FuzzParseSaid holds that what is accepted has a session, and is words or a call.
func FuzzParseSaid(f *testing.F) {
	f.Add([]byte(`{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"a"}`))
	f.Add([]byte(`{"session_id":"s","tool_name":"T","tool_response":{"content":[{"type":"text","text":"a"}],"structuredContent":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, h := range []toolcall.Harness{toolcall.Claude, toolcall.Codex} {
			said, err := toolcall.ParseSaid(h, data)
			if err == nil && (said.Session == "" || said.Call != nil && (said.Words != "" || said.Call.Tool == "")) {
				t.Errorf("%s: ParseSaid(%q) = %+v", h, data, said)
			}
			for _, v := range said.Results {
				if !v.IsValid() {
					t.Errorf("%s: ParseSaid(%q) has the result %q", h, data, v)
				}
			}
		}
	})
}
