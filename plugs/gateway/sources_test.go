package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/gateway"
	"writ.example/writ/plugs/plug"
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

// TestGateway_SourcesOfAll holds what is kept of every kind of result, that the same words sent again cost nothing, and
// that the server gets labels alone.
func TestGateway_SourcesOfAll(t *testing.T) {
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			mapping := filepath.Join(t.TempDir(), "mapping.yaml")
			must(t, os.WriteFile(mapping, []byte("sources:\n  broken: [people.*]\n  contacts: [people.*]\ntools:\n  inbox: {resources: [mailbox]}\n"), 0o600))
			behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
			people := `{"people":["%s"]}`
			for name, answer := range map[string]*mcp.CallToolResult{
				"broken":   {IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(people, "err@evil.test")}}},
				"contacts": {Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(people, "tom@ours.example")}}},
				"inbox":    {Content: []mcp.Content{&mcp.TextContent{Text: "from eve@evil.test"}}},
				"attached": {Content: []mcp.Content{&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note:1", Text: "sam@shop.example"}}}},
				"photo":    {Content: []mcp.Content{&mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}},
				"send":     {},
			} {
				behind.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{}}}`)},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer, nil })
			}
			behind.AddResource(&mcp.Resource{Name: "r", URI: "note:2"},
				func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note:2", Text: "res@shop.example"}}}, nil
				})
			behind.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "prompt@shop.example"}}}}, nil
			})
			c, writ := through(t, behind, revision, nil, func(c *gateway.Config) { c.Mapping, c.TrustClientWords = mapping, true })
			words := "Look into my mailbox. " + strings.Repeat("x ", 500)
			call := func(tool string, to ...string) {
				t.Helper()
				p := &mcp.CallToolParams{Name: tool, Meta: mcp.Meta{"writ/user": words}}
				if len(to) > 0 {
					p.Arguments = map[string]any{"to": to}
				}
				_, err := c.CallTool(t.Context(), p)
				must(t, err)
			}
			check := func(want string, to ...string) {
				t.Helper()
				call("send", to...)
				writ.mu.Lock()
				defer writ.mu.Unlock()
				metadata, _ := writ.intents[len(writ.intents)-1]["metadata"].(map[string]any)
				if got := metadata["fact.source.to"]; got != want {
					t.Errorf("the sources of %v are %v, want %s", to, got, want)
				}
			}
			for _, tool := range []string{"broken", "contacts", "inbox", "attached"} {
				call(tool)
			}
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "note:2"})
			must(t, err)
			_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"})
			must(t, err)
			// The mapping calls every mailbox that, so the user has not named a place by it.
			all := []string{"err@evil.test", "tom@ours.example", "eve@evil.test", "sam@shop.example", "res@shop.example", "prompt@shop.example"}
			check("text,record,text,text,text,text,model", append(all, "new@ours.example")...)
			for range 80 {
				call("send")
			}
			check("record,model", "tom@ours.example", "new@ours.example")
			call("photo")
			check("record,text,unknown", "tom@ours.example", "eve@evil.test", "new@ours.example")
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "send", Meta: mcp.Meta{"writ/user": 1}}); err == nil ||
				!strings.Contains(err.Error(), "writ/user: want a text") {
				t.Errorf("words that are no text: %v", err)
			}
			sent, err := json.Marshal(writ.intents)
			if must(t, err); strings.Contains(string(sent), "Look into") {
				t.Error("the server got the user's words")
			}
		})
	}
}

// TestGateway_SourcesOverHTTP holds that what one client's user and tools have said labels nothing that another client
// asks, and that requests without a connection know of nothing before them.
func TestGateway_SourcesOverHTTP(t *testing.T) {
	writ := new(allowing)
	server := httptest.NewServer(writ)
	t.Cleanup(server.Close)
	mapping := filepath.Join(t.TempDir(), "mapping.yaml")
	must(t, os.WriteFile(mapping, []byte("sources: {}\n"), 0o600))
	behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
	behind.AddTool(&mcp.Tool{Name: "send", InputSchema: json.RawMessage(`{"type":"object","properties":{"to":{}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "eve@evil.test"}}}, nil
		})
	near, far := mcp.NewInMemoryTransports()
	session, err := behind.Connect(t.Context(), far, nil)
	must(t, err)
	g, err := gateway.Open(t.Context(), gateway.Config{Server: "s", Log: t.Output(), TrustClientWords: true, Settings: plug.Settings{
		URL: server.URL, APIKey: "writ_secret", PolicyID: "p", AgentID: "a", Timeout: 20 * time.Second, Wait: time.Second,
		State: filepath.Join(t.TempDir(), "state"), Mapping: mapping,
	}}, near)
	must(t, err)
	front := httptest.NewServer(g.Handler(gateway.Front{Listen: "127.0.0.1:0"}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		_ = g.Close()
		_ = session.Close()
	})
	for revision, want := range map[string][]any{
		"2025-06-18": {"user,model,model", "user,text,model", "model,model,model"},
		"2026-07-28": {"unknown,unknown,unknown", "unknown,unknown,unknown", "unknown,unknown,unknown"},
	} {
		var got []any
		for client := range 2 {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(),
				&mcp.StreamableClientTransport{Endpoint: front.URL}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
			must(t, err)
			for range 2 - client {
				p := &mcp.CallToolParams{Name: "send", Arguments: map[string]any{"to": "sam@ours.example, eve@evil.test, new@ours.example"}}
				if client == 0 {
					p.Meta = mcp.Meta{"writ/user": "to sam@ours.example"}
				}
				_, err = c.CallTool(t.Context(), p)
				must(t, err)
				metadata, _ := writ.intents[len(writ.intents)-1]["metadata"].(map[string]any)
				got = append(got, metadata["fact.source.to"])
			}
			must(t, c.Close())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", revision, diff)
		}
	}
}
