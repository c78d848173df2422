package envoy

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	writ "writ.example/writ/sdk/go"
)

// TestCall reads messages to an MCP server as intents.
func TestCall(t *testing.T) {
	type want struct{ action, resource, fact, problem string }
	for body, want := range map[string]want{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/a"}}}`: {
			action: "mcp.fs.read", resource: "/srv/a", fact: "/srv/a"},
		`{"method":"tools/call","params":{"name":"list"}}`:                        {action: "mcp.fs.list", resource: "mcp/fs/list"},
		`{"method":"resources/read","params":{"uri":"file:///srv/a"}}`:            {action: "mcp.fs:resources/read", resource: "file:///srv/a"},
		`{"method":"prompts/get","params":{"name":"p"}}`:                          {action: "mcp.fs:prompts/get", resource: "mcp/fs/prompts/p"},
		`{"method":"tools/list"}`:                                                 {},
		`{"method":"notifications/initialized"}`:                                  {},
		`{"method":"tools/call","params":{"arguments":{}}}`:                       {problem: "params.name: want a text"},
		`{"method":"tools/call"}`:                                                 {problem: "params: want one JSON object"},
		`{"method":"tools/call","method":"ping"}`:                                 {problem: "body: want one JSON object, with each member once"},
		`{"method":"ping","Method":"tools/call"}`:                                 {problem: `body: "Method" is read by some as "method"`},
		`{"method":"tools/call","params":{"name":"list","Name":"drop"}}`:          {problem: `params: "Name" is read`},
		`{"method":"tools/call","params":{"name":"l","arguments":{"a":1,"a":2}}}`: {problem: "body: want one JSON object, with each"},
		`{"method":"tools/call","params":{"name":"l","arguments":[1]}}`:           {problem: "params: "},
		`{"method":"prompts/get","params":{"name":"p","arguments":{"a":1}}}`:      {problem: "params.arguments: want an object of texts"},
		`{"method":"completion/complete","params":{}}`:                            {problem: "method: writ does not pass"},
		`{"id":1,"result":{}}`:                                                    {problem: "body: want a request"},
		`[{"method":"ping"}]`:                                                     {problem: "body: want one JSON object"},
		`{"method":"ping"}{"method":"tools/call","params":{"name":"l"}}`:          {problem: "body: want one JSON object"},
		"null": {problem: "body: want"}, "": {problem: "body: want"}, "\x1f\x8b": {problem: "body: want"},
	} {
		h := &authv3.AttributeContext_HttpRequest{Method: "POST", RawBody: []byte(body)}
		var in writ.Intent
		decided, err := call("fs", h, map[string]string{"content-length": strconv.Itoa(len(body))}, &in)
		switch {
		case want.problem != "":
			if err == nil || !strings.HasPrefix(err.Error(), want.problem) {
				t.Errorf("%s = %v, want %s", body, err, want.problem)
			}
		case err != nil || decided != (want.action != "") || in.Resource != want.resource ||
			decided && in.ActionType != want.action || in.Metadata["fact.arg.path"] != want.fact:
			t.Errorf("%s = %t %+v, %v; want %+v", body, decided, in, err, want)
		}
	}
	for body, want := range map[string]map[string]string{ // as writ mcp says them
		`{"method":"resources/read","params":{"uri":"file:///a"}}`:                        {"fact.arg.uri": "file:///a"},
		`{"method":"prompts/get","params":{"name":"p","arguments":{"a":"1","fact":"x"}}}`: {"fact.arg.a": "1", "fact.arg.fact": "x"},
		`{"method":"prompts/get","params":{"name":"p","arguments":null}}`:                 {},
	} {
		var in writ.Intent
		_, err := call("fs", &authv3.AttributeContext_HttpRequest{Method: "POST", RawBody: []byte(body)}, nil, &in)
		if err != nil || !maps.Equal(in.Metadata, want) {
			t.Errorf("the facts of %s are %v, %v, want %v", body, in.Metadata, err, want)
		}
	}
	whole := `{"method":"ping"}`
	for _, headers := range []map[string]string{
		{"content-length": "400"}, {"x-envoy-auth-partial-body": "true"}, {"content-encoding": "gzip"},
	} {
		h := &authv3.AttributeContext_HttpRequest{Method: "POST", Body: whole}
		if _, err := call("fs", h, headers, new(writ.Intent)); err == nil {
			t.Errorf("a message with %v = nil, want an error", headers)
		}
	}
}

// FuzzCall checks that no message is both refused and passed, and that a decided one has an action and a
// resource.
func FuzzCall(f *testing.F) {
	f.Add([]byte(`{"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/a"}}}`))
	f.Add([]byte(`{"method":"resources/read","params":{"uri":"a"}}`))
	f.Add([]byte(`{"method":"ping"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := &authv3.AttributeContext_HttpRequest{Method: "POST", RawBody: body}
		var in writ.Intent
		decided, err := call("fs", h, nil, &in)
		if decided && err == nil && (in.ActionType == "" || in.Resource == "") {
			t.Errorf("%q is decided as %+v", body, in)
		}
		if !decided && err == nil && strings.Contains(string(body), `"tools/call"`) && in.ActionType != "" {
			t.Errorf("%q passes with %+v", body, in)
		}
	})
}
