// Package toolcall reads the calls of tools that a harness, the program that runs an agent, hands to a
// hook before it makes them, and says which action each call is. It knows Claude Code, Codex, Gemini
// CLI and Cursor.
//
// A harness writes one JSON object. Unknown members are ignored. A call that can be read in two ways, or in
// none, is an error: invalid JSON, a member that is given twice, a member of another type, a call without a
// tool. The caller must not let such a call run.
package toolcall

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Harness is a program that runs an agent.
type Harness string

// The harnesses.
const (
	Claude Harness = "claude"
	Codex  Harness = "codex"
	Gemini Harness = "gemini"
	Cursor Harness = "cursor"
)

// MaxInput is the greatest number of bytes of a call.
const MaxInput = 16 << 20

// Call is a call of a tool.
type Call struct {
	Harness Harness
	Event   string // such as PreToolUse
	Session string
	ID      string // the harness's id of the call, if it has one
	Mode    string // the permission mode of the harness, if it says it
	CWD     string // an absolute path, if it is not empty
	Tool    string // as the harness calls it
	Args    map[string]jsontext.Value

	// Stated is further metadata of the call's intents. It is there however many arguments there are.
	Stated map[string]string
	// Sources has by argument what is said beside its fact of where its values come from.
	Sources map[string]map[string]string

	mcp    string // server/tool of a tool of an MCP server
	method string // of a request of an MCP server that calls no tool
}

// before and after are the events before and after a call, by harness.
var (
	before = map[Harness][]string{
		Claude: {"PreToolUse"}, Codex: {"PreToolUse"}, Gemini: {"BeforeTool"},
		Cursor: {"beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "preToolUse"},
	}
	after = map[Harness][]string{
		Claude: {"PostToolUse", "PostToolUseFailure"}, Codex: {"PostToolUse"}, Gemini: {"AfterTool"},
		Cursor: {"afterShellExecution", "afterMCPExecution", "postToolUse", "postToolUseFailure"},
	}
)

// end has the event at the end of a session, by harness.
var end = map[Harness]string{Claude: "SessionEnd", Codex: "SessionEnd", Gemini: "SessionEnd", Cursor: "sessionEnd"}

// End returns the event at the end of a harness's session.
func End(h Harness) string { return end[h] }

// ParseEnd returns the session that has ended.
func ParseEnd(h Harness, data []byte) (session string, err error) {
	in, err := membersOf(data)
	if err != nil {
		return "", err
	}
	r := reader{in: in}
	event, session := r.text("hook_event_name"), r.text("session_id")
	if h == Cursor && session == "" {
		session = r.text("conversation_id")
	}
	r.check(event == end[h], "hook_event_name", "want "+end[h])
	r.check(session != "", "session_id", "is missing: there is no session to end")
	return session, r.err
}

// Before returns the events before a call in which a hook of the harness must be asked.
func Before(h Harness) []string { return before[h] }

// Parse reads a call that is about to be made.
func Parse(h Harness, data []byte) (Call, error) { return parse(h, data, before[h]) }

// ParseMade reads a call that was made.
func ParseMade(h Harness, data []byte) (Call, error) { return parse(h, data, after[h]) }

// membersOf reads the one object that a harness writes.
func membersOf(data []byte) (in members, err error) {
	if len(data) > MaxInput {
		return nil, fmt.Errorf("the call is longer than %d bytes", MaxInput)
	}
	err = json.Unmarshal(data, &in)
	var kind *json.SemanticError
	switch {
	case errors.As(err, &kind):
		// The library words this error in two ways, and chooses at random.
		return nil, errors.New("the call is no JSON object")
	case err != nil:
		return nil, fmt.Errorf("the call is not one JSON object: %w", err)
	}
	if in == nil {
		return nil, errors.New("the call is null, want a JSON object")
	}
	return in, nil
}

func parse(h Harness, data []byte, events []string) (Call, error) {
	in, err := membersOf(data)
	if err != nil {
		return Call{}, err
	}
	r := reader{in: in}
	c := Call{
		Harness: h, Event: r.text("hook_event_name"), Session: r.text("session_id"), ID: r.text("tool_use_id"),
		Mode: r.text("permission_mode"), CWD: r.text("cwd"), Tool: r.text("tool_name"), Args: r.args("tool_input"),
	}
	switch {
	case h == Cursor:
		r.cursor(&c)
	case h == Gemini && !isNull(in["mcp_context"]):
		r.gemini(&c)
	case strings.HasPrefix(c.Tool, "mcp__"):
		server, tool, ok := strings.Cut(strings.TrimPrefix(c.Tool, "mcp__"), "__")
		r.check(ok && server != "" && tool != "", "tool_name", "want mcp__SERVER__TOOL")
		c.mcp = server + "/" + tool
	}
	r.check(c.Event == "" || slices.Contains(events, c.Event), "hook_event_name", "want "+strings.Join(events, " or "))
	r.check(c.Tool != "", "tool_name", "is missing: there is no tool to decide about")
	r.check(c.CWD == "" || filepath.IsAbs(c.CWD), "cwd", "want an absolute path")
	return c, r.err
}

// OfServer returns a call of a tool of an MCP server, as a gateway reads it. args is a JSON object, or nothing.
func OfServer(server, tool string, args []byte) (Call, error) {
	r := reader{in: members{"arguments": args}}
	c := Call{Harness: "mcp", Tool: tool, mcp: server + "/" + tool, Args: r.object("arguments", r.in["arguments"])}
	return c, r.err
}

// OfMethod returns a request of an MCP server that calls no tool, as a gateway reads it. args are what the agent
// asks with.
func OfMethod(server, method string, args map[string]string) (Call, error) {
	data, err := json.Marshal(args)
	if err != nil {
		return Call{}, fmt.Errorf("arguments: %w", err)
	}
	c, err := OfServer(server, method, data)
	c.method = method
	return c, err
}

// Server returns the MCP server that has the tool, or nothing.
func (c Call) Server() string {
	server, _, _ := strings.Cut(c.mcp, "/")
	return server
}

// members are the members of a JSON object. A member that is given twice is an error.
type members map[string]jsontext.Value

func isNull(v jsontext.Value) bool { return v == nil || v.Kind() == 'n' }

// reader reads members and keeps the first mistake.
type reader struct {
	in  members
	err error
}

func (r *reader) check(ok bool, name, problem string) {
	if !ok && r.err == nil {
		r.err = fmt.Errorf("%s: %s", name, problem)
	}
}

// text returns a member that is a string, or "" if it is missing or null.
func (r *reader) text(name string) (s string) {
	if v := r.in[name]; !isNull(v) {
		r.check(json.Unmarshal(v, &s) == nil, name, "want a string")
	}
	return s
}

// args returns a member that is an object, or a string that is the JSON of one. Another text is an
// argument called input.
func (r *reader) args(name string) (args map[string]jsontext.Value) {
	v := r.in[name]
	if isNull(v) {
		return nil
	}
	if v.Kind() == '"' {
		text := r.text(name)
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			return map[string]jsontext.Value{"input": v}
		}
		v = jsontext.Value(text)
	}
	return r.object(name, v)
}

// object returns the members of v, an object, or nothing if it is missing or null.
func (r *reader) object(name string, v jsontext.Value) (args map[string]jsontext.Value) {
	if isNull(v) {
		return nil
	}
	r.check(json.Unmarshal(v, &args) == nil, name, "want a JSON object without duplicate members")
	for k, arg := range args {
		r.check(arg.Compact() == nil, name, "want JSON")
		args[k] = arg
	}
	return args
}

// gemini reads which MCP server a tool belongs to.
func (r *reader) gemini(c *Call) {
	var of members
	r.check(json.Unmarshal(r.in["mcp_context"], &of) == nil, "mcp_context", "want an object")
	inner := reader{in: of}
	server, tool := inner.text("server_name"), inner.text("tool_name")
	r.check(inner.err == nil && server != "" && tool != "", "mcp_context", "want server_name and tool_name")
	c.mcp = server + "/" + tool
}

// cursor reads the members that Cursor calls otherwise.
func (r *reader) cursor(c *Call) {
	if c.Session == "" {
		c.Session = r.text("conversation_id")
	}
	if roots := r.in["workspace_roots"]; c.CWD == "" && !isNull(roots) {
		var all []string
		r.check(json.Unmarshal(roots, &all) == nil, "workspace_roots", "want a list of paths")
		if len(all) > 0 {
			c.CWD = all[0]
		}
	}
	switch c.Event {
	case "beforeShellExecution", "afterShellExecution":
		c.Tool, c.Args = "Shell", map[string]jsontext.Value{"command": r.in["command"]}
		r.check(r.text("command") != "", "command", "is missing: there is nothing to decide about")
	case "beforeReadFile":
		c.Tool, c.Args = "Read", map[string]jsontext.Value{"file_path": r.in["file_path"]}
		r.check(r.text("file_path") != "", "file_path", "is missing: there is nothing to decide about")
	case "beforeMCPExecution", "afterMCPExecution":
		r.check(c.Tool != "", "tool_name", "is missing: there is no tool to decide about")
		c.mcp = strings.ReplaceAll(strings.TrimPrefix(c.Tool, "MCP:"), ":", "/")
	case "":
		r.check(false, "hook_event_name", "is missing")
	default:
		if name, ok := strings.CutPrefix(c.Tool, "MCP:"); ok {
			c.mcp = strings.ReplaceAll(name, ":", "/")
		}
	}
}

// IntentID returns the id of the call's intent: the same for the same call, and a new one if the
// harness gives calls no id.
func (c Call) IntentID() string {
	if c.ID == "" || c.Session == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.Session+"\n"+c.ID)).String()
}

// Following returns the id of the intent at a place of a call of several intents, of which the first has the id
// first. A call that comes again has the same ids.
func Following(first string, place int) string {
	if place == 0 {
		return first
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s/%d", first, place)).String()
}

// Failed reports whether a call that was made has failed, as far as the harness says it.
func (c Call) Failed() bool { return strings.HasSuffix(c.Event, "UseFailure") }
