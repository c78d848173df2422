package toolcall

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// prompt has the event in which a hook is told the user's words, by harness.
var prompt = map[Harness]string{Claude: "UserPromptSubmit", Codex: "UserPromptSubmit"}

// Prompt returns the event in which a hook is told the user's words, or nothing if the harness has none.
func Prompt(h Harness) string { return prompt[h] }

// Said is what a user or a tool has said in a session.
type Said struct {
	Session string
	Words   string           // of the user
	Call    *Call            // that was made, if a tool has said it
	Results []jsontext.Value // of that call
}

// ParseSaid reads words of the user, or the result of a call.
func ParseSaid(h Harness, data []byte) (Said, error) {
	in, err := membersOf(data)
	if err != nil {
		return Said{}, err
	}
	r := reader{in: in}
	s := Said{Session: r.text("session_id")}
	r.check(s.Session != "", "session_id", "is missing: there is no session to keep this of")
	if r.text("hook_event_name") == prompt[h] {
		s.Words = r.text("prompt")
		r.check(!isNull(in["prompt"]), "prompt", "is missing: want the user's words")
		return s, r.err
	}
	call, err := ParseMade(h, data)
	if err = cmp.Or(r.err, err); err != nil {
		return Said{}, err
	}
	s.Call = &call
	for _, name := range []string{"tool_response", "error"} {
		if v := in[name]; !isNull(v) {
			s.Results = append(s.Results, contents(v)...)
		}
	}
	return s, nil
}

// contents returns the texts of an MCP server's contents, and any other result as it is.
func contents(v jsontext.Value) []jsontext.Value {
	var result struct {
		Content    jsontext.Value `json:"content"`
		Structured jsontext.Value `json:"structuredContent"`
	}
	switch v.Kind() {
	case '{':
		if json.Unmarshal(v, &result) != nil || result.Content.Kind() != '[' {
			return []jsontext.Value{v}
		}
		all := contents(result.Content)
		if !isNull(result.Structured) {
			all = append(all, result.Structured)
		}
		return all
	case '[':
		var list []jsontext.Value
		if json.Unmarshal(v, &list) != nil {
			return []jsontext.Value{v}
		}
		for i, one := range list {
			var block struct {
				Type string         `json:"type"`
				Text jsontext.Value `json:"text"`
			}
			if one.Kind() != '{' || json.Unmarshal(one, &block) != nil || block.Type == "" {
				return []jsontext.Value{v} // a list of another kind
			}
			if block.Type == "text" && block.Text.Kind() == '"' {
				list[i] = block.Text
			}
		}
		return list
	}
	return []jsontext.Value{v}
}
