package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/internal/toolcall"
)

// tools are the tools of the server behind, as clients see them.
type tools struct {
	shown  []*mcp.Tool
	byName map[string]*tool
	sha256 string // of all definitions
}

// tool is a tool of the server behind.
type tool struct {
	definition []byte
	schema     *jsonschema.Resolved
	closed     bool            // there are no arguments beside those
	known      map[string]bool // arguments
	unpinned   string          // why it is held, if it is
	hints      map[string]string
	authzen    *authzen // the mapping that the server declares, or nil
}

// hintsOf returns the annotations of a tool, with the protocol's defaults. It is the word of that server, not
// a fact, so a rule that allows must not rest on it.
func hintsOf(a *mcp.ToolAnnotations) map[string]string {
	if a == nil {
		a = new(mcp.ToolAnnotations)
	}
	orTrue := func(b *bool) string { return strconv.FormatBool(b == nil || *b) }
	return map[string]string{
		"hint.read_only": strconv.FormatBool(a.ReadOnlyHint), "hint.idempotent": strconv.FormatBool(a.IdempotentHint),
		"hint.destructive": orTrue(a.DestructiveHint), "hint.open_world": orTrue(a.OpenWorldHint),
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

const maxTools = 2000

// readTools reads the tools of the server behind. A tool that cannot be decided is left out.
func (g *Gateway) readTools(ctx context.Context) error {
	t := tools{byName: make(map[string]*tool)}
	if has := g.capabilities(); has != nil && has.Tools == nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tools = t
		return nil
	}
	pinned, err := g.readPin()
	if err != nil {
		return err
	}
	found, err := allTools(ctx, g.behind)
	if err != nil {
		return err
	}
	sum := sha256.New()
	for _, def := range found {
		one, err := newTool(def)
		if err != nil {
			g.say("the tool %.100q is left out: %v", def.Name, err)
			continue
		}
		if _, twice := t.byName[def.Name]; twice {
			return fmt.Errorf("the server behind has two tools called %s", def.Name)
		}
		sum.Write(append(one.definition, '\n'))
		t.byName[def.Name] = one
		if def, err = g.pinned(pinned, def, one); err != nil {
			return err
		} else if def != nil {
			t.shown = append(t.shown, def)
		}
	}
	t.sha256 = fmt.Sprintf("%x", sum.Sum(nil))
	if pinned == nil && g.config.Pin != "" {
		if err := writePin(g.config.Pin, g.config.Server, t.byName, false); err != nil {
			return err
		}
		g.say("pinned %d tools in %s", len(t.byName), g.config.Pin)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tools = t
	return nil
}

// allTools returns the tools of a server.
func allTools(ctx context.Context, behind *mcp.ClientSession) (all []*mcp.Tool, err error) {
	for def, err := range behind.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("tools of the server behind: %w", err)
		}
		if all = append(all, def); len(all) > maxTools {
			return nil, fmt.Errorf("the server behind has more than %d tools", maxTools)
		}
	}
	return all, nil
}

func newTool(def *mcp.Tool) (*tool, error) {
	if !toolName.MatchString(def.Name) {
		return nil, errors.New("its name has other characters than letters, digits, _, - and ., or more than 64")
	}
	t := &tool{known: make(map[string]bool), hints: hintsOf(def.Annotations)}
	var err error
	if t.definition, err = json.Marshal(def); err != nil {
		return nil, err
	}
	schema, err := json.Marshal(def.InputSchema)
	if err != nil {
		return nil, err
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(schema, &parsed); err != nil {
		return nil, fmt.Errorf("its inputSchema: %w", err)
	}
	if t.schema, err = parsed.Resolve(nil); err != nil { // a schema refers to itself alone
		return nil, fmt.Errorf("its inputSchema: %w", err)
	}
	var members struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
		AllOf, AnyOf, OneOf  json.RawMessage
		Ref                  string          `json:"$ref"`
		AuthZEN              json.RawMessage `json:"x-authzen-mapping"`
	}
	if err := json.Unmarshal(schema, &members); err != nil {
		return nil, fmt.Errorf("its inputSchema: %w", err)
	}
	for name := range members.Properties {
		t.known[name] = true
	}
	t.closed = members.AdditionalProperties == nil && members.PatternProperties == nil &&
		members.AllOf == nil && members.AnyOf == nil && members.OneOf == nil && members.Ref == ""
	t.authzen = readAuthZEN(members.AuthZEN)
	return t, nil
}

// check refuses arguments that the tool does not take. A server may read what its schema
// leaves open, so an argument beside the named ones needs a schema that says it may be there. Names that
// differ in case alone are refused: some servers read both as one.
func (t *tool) check(call toolcall.Call, args []byte) error {
	folded := make(map[string]string, len(call.Args))
	for name := range call.Args {
		if t.closed && !t.known[name] {
			return fmt.Errorf("arguments.%.200s: the tool has no such argument", name)
		}
		low := strings.ToLower(name)
		if other, twice := folded[low]; twice {
			return fmt.Errorf("arguments: %.200q and %.200q differ in case alone", name, other)
		}
		folded[low] = name
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	var doc any
	if err := json.Unmarshal(args, &doc); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	if err := t.schema.Validate(doc); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	return nil
}

// tool returns a tool, and the digest of all. A tool that is not known is looked for once more.
func (g *Gateway) tool(ctx context.Context, name string) (*tool, string, error) {
	for again := range 2 {
		if again > 0 {
			if err := g.readTools(ctx); err != nil {
				return nil, "", g.undecided(err)
			}
		}
		g.mu.Lock()
		t, sum := g.tools.byName[name], g.tools.sha256
		g.mu.Unlock()
		if t != nil {
			return t, sum, nil
		}
	}
	return nil, "", fail(jsonrpc.CodeInvalidParams, "unknown tool %.200q", name)
}

// listTools reads the tools again, so that the client sees those that are decided about.
func (g *Gateway) listTools(ctx context.Context) (*mcp.ListToolsResult, error) {
	if err := g.readTools(ctx); err != nil {
		return nil, g.undecided(err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	shown := append([]*mcp.Tool{}, g.tools.shown...)
	return &mcp.ListToolsResult{Tools: shown, Cacheable: private}, nil
}
