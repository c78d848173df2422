package gateway_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/gateway"
)

// TestGateway_Sources holds where the arguments of calls are said to come from.
func TestGateway_Sources(t *testing.T) {
	mapping := filepath.Join(t.TempDir(), "mapping.yaml")
	must(t, os.WriteFile(mapping, []byte("sources:\n  contacts: [people.*.email]\ntools:\n  read: {resources: [$.path]}\n"), 0o600))
	returns := map[string]*mcp.CallToolResult{
		"contacts": {StructuredContent: map[string]any{"people": []any{map[string]any{"email": "ana@ours.example", "note": "bob@notes.example"}}}},
		"read":     {Content: []mcp.Content{&mcp.TextContent{Text: "pay eve@bill.example"}}},
		"mail": {Content: []mcp.Content{
			&mcp.TextContent{Text: "from eve@evil.test"}, &mcp.ResourceLink{URI: "file:///x", Name: "mallory@link.example"},
		}},
		"send": {},
	}
	for _, c := range []struct {
		name  string
		trust bool
		calls []mcp.CallToolParams
		want  any // fact.source.to of the last call
	}{
		{"nowhere", true, nil, "model"},
		{"the user's words", true, []mcp.CallToolParams{{Name: "send", Meta: mcp.Meta{"writ/user": "to to@x.example"}}}, "user"},
		{"several words", true, []mcp.CallToolParams{{Name: "send", Meta: mcp.Meta{"writ/user": []any{"a", "to to@x.example"}}}}, "user"},
		{"words that are not trusted", false, []mcp.CallToolParams{{Name: "send", Meta: mcp.Meta{"writ/user": "to to@x.example"}}}, "model"},
		{"a record", true, []mcp.CallToolParams{{Name: "contacts"}}, "record"},
		{"beside a record", true, []mcp.CallToolParams{{Name: "contacts"}}, "text"},
		{"a text", true, []mcp.CallToolParams{{Name: "mail"}}, "text"},
		{"a link", true, []mcp.CallToolParams{{Name: "mail"}}, "text"},
		{"a place that nobody named", true, []mcp.CallToolParams{{Name: "read", Arguments: map[string]any{"path": "/srv/bill.txt"}}}, "text"},
		{"a place that the user named", true, []mcp.CallToolParams{
			{Name: "read", Arguments: map[string]any{"path": "/srv/bill.txt"}, Meta: mcp.Meta{"writ/user": "pay /srv/bill.txt"}},
		}, "named"},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
			for name, result := range returns {
				behind.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{},"path":{}}}`)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return result, nil })
			}
			client, writ := through(t, behind, "2025-06-18", nil, func(g *gateway.Config) {
				g.Mapping, g.TrustClientWords = mapping, c.trust
			})
			for _, call := range c.calls {
				_, err := client.CallTool(t.Context(), &call)
				must(t, err)
			}
			to := map[string]string{
				"a record": "ana@ours.example", "beside a record": "bob@notes.example", "a text": "eve@evil.test", "a link": "mallory@link.example",
				"a place that nobody named": "eve@bill.example", "a place that the user named": "eve@bill.example",
			}[c.name]
			if to == "" {
				to = "to@x.example"
			}
			_, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "send", Arguments: map[string]any{"to": to}})
			must(t, err)
			writ.mu.Lock()
			defer writ.mu.Unlock()
			metadata := writ.intents[len(writ.intents)-1]["metadata"].(map[string]any)
			got := map[string]any{"to": metadata["fact.arg.to"], "source": metadata["fact.source.to"]}
			if diff := cmp.Diff(map[string]any{"to": to, "source": c.want}, got); diff != "" {
				t.Errorf("the last call (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMapping_Sources holds which sources a mapping may have.
func TestMapping_Sources(t *testing.T) {
	for text, ok := range map[string]bool{
		"sources: {}\n": true, "sources:\n": false, "sources: [a]\n": false, "sources: {a: b}\n": false, "sources: {a: [b.c]}\n": true,
	} {
		mapping := filepath.Join(t.TempDir(), "mapping.yaml")
		must(t, os.WriteFile(mapping, []byte(text), 0o600))
		config := gateway.Config{Server: "s", Log: t.Output()}
		config.URL, config.APIKey, config.PolicyID = "http://127.0.0.1:1", "k", "p"
		config.Timeout, config.Settings.Wait, config.State, config.Mapping = 1e9, 1e9, t.TempDir(), mapping
		_, err := config.Open("mcp", "mcp")
		if (err == nil) != ok {
			t.Errorf("the mapping %q: %v", text, err)
		}
	}
}
