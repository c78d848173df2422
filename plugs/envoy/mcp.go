package envoy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// plain are the methods of MCP that are about the connection, or that list what there is. They pass.
var plain = []string{
	"initialize", "server/discover", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list",
	"notifications/initialized", "notifications/cancelled", "notifications/progress",
}

// The members of a message, and of params, that are read. A server may ignore case, so a member that
// differs from one of these in case alone is refused.
var (
	messageMembers = []string{"jsonrpc", "id", "method", "params"}
	paramsMembers  = []string{"name", "uri", "arguments"}
)

// call fills in the action, the resource and the facts of a message to an MCP server. It reports false if
// the message passes without a decision.
func call(
	server string, h *authv3.AttributeContext_HttpRequest, headers map[string]string, in *writ.Intent,
) (decided bool, err error) {
	body := h.GetRawBody()
	if body == nil {
		body = []byte(h.GetBody())
	}
	size, err := strconv.Atoi(headers["content-length"])
	switch {
	case headers["x-envoy-auth-partial-body"] == "true", err == nil && size != len(body):
		return false, &mistake{"body", "Envoy has cut it: raise max_request_bytes"}
	case headers["content-encoding"] != "":
		return false, &mistake{"content-encoding", "want none"}
	}
	message, err := members("body", body, messageMembers)
	if err != nil {
		return false, err
	}
	for name := range message {
		if !slices.Contains(messageMembers, name) {
			return false, &mistake{"body", "want a request of JSON-RPC, which has no member " + strconv.Quote(name)}
		}
	}
	method, err := text("method", message["method"])
	if err != nil {
		return false, err
	}
	if slices.Contains(plain, method) {
		return false, nil
	}
	params, err := members("params", message["params"], paramsMembers)
	if err != nil {
		return false, err
	}
	args := make(map[string]string)
	switch method {
	case "tools/call":
		return true, ofTool(server, params, in)
	case "resources/read":
		in.Resource, err = text("params.uri", params["uri"])
		args["uri"] = in.Resource
	case "prompts/get":
		var name string
		name, err = text("params.name", params["name"])
		in.Resource = toolcall.PromptResource(server, name)
		if v := params["arguments"]; err == nil && v != nil && json.Unmarshal(v, &args) != nil {
			err = &mistake{"params.arguments", "want an object of texts"}
		}
	default:
		return false, &mistake{"method", "writ does not pass " + strconv.Quote(method) + " on"}
	}
	if err != nil {
		return false, err
	}
	asked, err := toolcall.OfMethod(server, method, args)
	return true, of(asked, err, in)
}

// ofTool fills in the action, the resource and the facts of a call of a tool.
func ofTool(server string, params map[string]jsontext.Value, in *writ.Intent) error {
	name, err := text("params.name", params["name"])
	if err != nil {
		return err
	}
	call, err := toolcall.OfServer(server, name, params["arguments"])
	if err == nil {
		in.Resource, err = call.Resource()
	}
	return of(call, err, in)
}

// of fills in the action and the facts of what is asked of a server, if there was no mistake until here.
func of(call toolcall.Call, err error, in *writ.Intent) error {
	if err == nil {
		in.ActionType = call.ActionType()
		in.Metadata, err = call.Facts()
	}
	if err != nil {
		return &mistake{"params", err.Error()}
	}
	return nil
}

// members reads an object. No member is given twice, and none differs from a known one in case alone.
func members(name string, data []byte, known []string) (map[string]jsontext.Value, error) {
	var in map[string]jsontext.Value
	if err := json.Unmarshal(data, &in); err != nil || in == nil {
		return nil, &mistake{name, "want one JSON object, with each member once"}
	}
	for member := range in {
		for _, k := range known {
			if member != k && strings.EqualFold(member, k) {
				return nil, &mistake{name, fmt.Sprintf("%q is read by some as %q", member, k)}
			}
		}
	}
	return in, nil
}

// text reads a text that is not empty.
func text(name string, v jsontext.Value) (s string, err error) {
	if v == nil || json.Unmarshal(v, &s) != nil || s == "" {
		return "", &mistake{name, "want a text"}
	}
	return s, nil
}
