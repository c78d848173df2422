package gateway

import "github.com/modelcontextprotocol/go-sdk/mcp"

// A list of the SDK that changes tells the clients. The gateway answers the lists itself, so
// that nobody sees what comes and goes here.
const coming = "writ"

func (g *Gateway) toolsChanged() {
	if s := g.front.Load(); s != nil {
		s.AddTool(&mcp.Tool{Name: coming, InputSchema: map[string]any{"type": "object"}}, nil)
		s.RemoveTools(coming)
	}
}

func (g *Gateway) promptsChanged() {
	if s := g.front.Load(); s != nil {
		s.AddPrompt(&mcp.Prompt{Name: coming}, nil)
		s.RemovePrompts(coming)
	}
}

func (g *Gateway) resourcesChanged() {
	if s := g.front.Load(); s != nil {
		s.AddResource(&mcp.Resource{Name: coming, URI: coming + ":"}, nil)
		s.RemoveResources(coming + ":")
	}
}
