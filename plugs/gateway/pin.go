package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/diff"

	"writ.example/writ/plugs/plug"
)

// pin is the file of pinned tools: their definitions as the server gave them. A server
// that changes what it says of a tool changes what a model does with it.
type pin struct {
	Server string                     `json:"server"`
	Tools  map[string]json.RawMessage `json:"tools"`
}

// readPin returns the pinned tools, or nil before the first pin.
func (g *Gateway) readPin() (*pin, error) {
	if g.config.Pin == "" {
		return nil, nil
	}
	p, err := readPin(g.config.Pin, g.config.Server)
	if errors.Is(err, fs.ErrNotExist) && !g.hasTools() {
		return nil, nil
	}
	return p, err
}

// hasTools reports whether tools were read before. A pin that is gone since then is no first use.
func (g *Gateway) hasTools() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tools.byName != nil
}

func readPin(name, server string) (*pin, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--pin: %w", err)
	}
	var p pin
	if err := json.Unmarshal(data, &p); err != nil || p.Tools == nil {
		return nil, fmt.Errorf("--pin: %s is damaged: look at it, and have it written anew", name)
	}
	if p.Server != server {
		return nil, fmt.Errorf("--pin: %s is of the server %s", name, p.Server)
	}
	for tool, def := range p.Tools {
		var short bytes.Buffer
		if err := json.Compact(&short, def); err != nil {
			return nil, fmt.Errorf("--pin: %s: tools.%s: %w", name, tool, err)
		}
		p.Tools[tool] = short.Bytes()
	}
	return &p, nil
}

// writePin writes the file of pinned tools. Unless it may replace one, a file of that name is an error.
func writePin(name, server string, found map[string]*tool, replace bool) error {
	p := pin{Server: server, Tools: make(map[string]json.RawMessage, len(found))}
	for name, t := range found {
		p.Tools[name] = t.definition
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := plug.WriteFile(name, append(data, '\n'), 0o600, replace); err != nil {
		return fmt.Errorf("--pin: %w", err)
	}
	return nil
}

// pinned says in t why a tool is held, and returns the definition that clients see: the pinned one, or
// nothing of a new tool. A text that nobody has looked at does not reach the model.
func (g *Gateway) pinned(p *pin, def *mcp.Tool, t *tool) (*mcp.Tool, error) {
	if p == nil {
		return def, nil
	}
	was, ok := p.Tools[def.Name]
	switch {
	case !ok:
		t.unpinned = "the tool " + def.Name + " is not pinned"
	case !bytes.Equal(was, t.definition):
		t.unpinned = "the tool " + def.Name + " has changed since it was pinned"
	default:
		return def, nil
	}
	t.unpinned += ": writ mcp pin shows the difference"
	g.say("%s", t.unpinned)
	if !ok {
		return nil, nil
	}
	shown := new(mcp.Tool)
	if err := json.Unmarshal(was, shown); err != nil {
		return nil, fmt.Errorf("--pin: %s: tools.%s: %w", g.config.Pin, def.Name, err)
	}
	return shown, nil
}

// PinChange is how the tools of a server differ from those that are pinned.
type PinChange struct {
	file, server string
	before       *pin
	found        map[string]*tool
}

// ComparePin compares the tools of a server with the pinned ones.
func ComparePin(ctx context.Context, c Config, behind mcp.Transport) (change PinChange, err error) {
	change = PinChange{file: c.Pin, server: c.Server, found: make(map[string]*tool)}
	change.before, err = readPin(c.Pin, c.Server)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return change, err
	}
	g := &Gateway{config: c}
	session, err := g.connect(ctx, behind)
	if err != nil {
		return change, fmt.Errorf("the server behind: %w", err)
	}
	found, err := allTools(ctx, session)
	if err = errors.Join(err, session.Close()); err != nil {
		return change, err
	}
	for _, def := range found {
		one, err := newTool(def)
		if err != nil {
			g.say("the tool %.100q is left out: %v", def.Name, err)
			continue
		}
		change.found[def.Name] = one
	}
	return change, nil
}

// Diff returns the change as a unified diff, or nothing.
func (c PinChange) Diff() []byte {
	before := map[string]json.RawMessage{}
	if c.before != nil {
		before = c.before.Tools
	}
	after := make(map[string]json.RawMessage, len(c.found))
	for name, t := range c.found {
		after[name] = t.definition
	}
	return diff.Diff("pinned", indented(before), "now", indented(after))
}

func indented(defs map[string]json.RawMessage) []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		_ = json.Indent(&out, defs[name], "", "  ") // it is JSON
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// Write pins the tools as they are now.
func (c PinChange) Write() error { return writePin(c.file, c.server, c.found, true) }
