package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// filesMCP is an MCP server that makes files, as a program of its own.
func filesMCP() {
	type file struct {
		Path string   `json:"path,omitempty"`
		To   []string `json:"to,omitempty"`
		Text string   `json:"text,omitempty"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	made := func(_ context.Context, _ *mcp.CallToolRequest, f file) (*mcp.CallToolResult, any, error) {
		for _, name := range append(f.To, f.Path) {
			if name == "" {
				continue
			}
			if err := os.WriteFile(name, []byte(f.Text), 0o600); err != nil {
				return nil, nil, err
			}
		}
		return nil, map[string]int{"bytes": len(f.Text)}, nil
	}
	for _, name := range []string{"touch", "copy"} {
		description := "Makes files." + os.Getenv("FILES_SAYS")
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: description}, made)
	}
	mcp.AddTool(s, &mcp.Tool{Name: "environment", Description: "Says which variables there are."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, os.Environ(), nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "hello"}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "file", URITemplate: "file:///{+path}"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "text"}}}, nil
		})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// gatewayed is a client of files-mcp behind writ mcp.
type gatewayed struct {
	*site
	client *mcp.ClientSession
}

// newGatewayed starts a server and connects to a gateway with flags.
func newGatewayed(t *testing.T, flags ...string) *gatewayed {
	g := &gatewayed{site: newServer(t, "/")}
	key := g.post("/v1/tokens", members{
		"name": "mcp", "scopes": []string{"policy:evaluate", "facts:assert", "sessions:write"}, "policy_id": harnessPolicy,
	})
	g.env = append(g.env, "WRIT_URL="+g.url, "WRIT_API_KEY="+fmt.Sprint(key["token"]), "WRIT_POLICY_ID="+harnessPolicy)
	g.client = g.connect(flags...)
	return g
}

// connect starts a gateway and connects to it.
func (g *gatewayed) connect(flags ...string) *mcp.ClientSession {
	g.t.Helper()
	cmd := exec.Command("writ", slices.Concat([]string{"mcp", "--server", "files"}, flags, []string{"--", "files-mcp"})...)
	cmd.Env, cmd.Dir, cmd.Stderr = g.env, g.project, g.t.Output()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	must(g.t, err)
	g.t.Cleanup(func() { _ = session.Close() })
	return session
}

// touch calls a tool that makes a file, and returns what the model hears.
func (g *gatewayed) touch(name string) string {
	return g.call("touch", map[string]any{"path": filepath.Join(g.project, name)})
}

func (g *gatewayed) call(tool string, args any) string {
	res, err := g.client.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: args})
	var e *jsonrpc.Error
	switch {
	case errors.As(err, &e):
		return fmt.Sprintf("%d %s", e.Code, e.Message)
	case err != nil:
		return err.Error()
	}
	said := "ok "
	if res.IsError {
		said = "error "
	}
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			said += text.Text
		}
	}
	return said
}

// check reports a call that a file shows to have been made, or not.
func (g *gatewayed) check(name, said, want string, made bool) {
	g.t.Helper()
	if !strings.HasPrefix(said, want) || g.made(name) != made {
		g.t.Errorf("%s: made = %t, want %t; the client heard %.300q, want %q", name, g.made(name), made, said, want)
	}
}

// TestMCP_Decides holds that what is allowed reaches the server and nothing else does, and that an
// approval lets one call through.
func TestMCP_Decides(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	g.check("a", g.touch("a"), "ok ", true)
	g.check("denied", g.touch("denied"), "error denied (decision ", false)
	held := g.touch("held")
	g.check("held", held, "error held, approval ", false)
	g.check("held", g.touch("held"), held, false)
	approval := regexp.MustCompile(`[0-9a-f-]{36}`).FindString(held)
	g.send(http.MethodPatch, "/v1/approvals/"+approval, members{"status": "approved"})
	g.check("held-too", g.touch("held-too"), "error held, approval ", false)
	g.check("held", g.touch("held"), "ok ", true)
	must(t, os.Remove(filepath.Join(g.project, "held")))
	g.check("held", g.touch("held"), "error held, approval ", false)

	if said := g.call("environment", nil); !strings.HasPrefix(said, "ok ") || strings.Contains(said, "WRIT_") {
		t.Errorf("the server behind sees %s", said)
	}
	ctx := context.Background()
	if res, err := g.client.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"}); err != nil || res.Description != "hello" {
		t.Errorf("a prompt: %v, %v", res, err)
	}
	if res, err := g.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///a"}); err != nil || res.Contents[0].Text != "text" {
		t.Errorf("a resource: %v, %v", res, err)
	}
	_, err := g.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///denied"})
	if e := (*jsonrpc.Error)(nil); !errors.As(err, &e) || e.Code != -32001 {
		t.Errorf("a resource that is denied: %v", err)
	}
}

// TestMCP_Refuses holds which calls are refused before they are decided.
func TestMCP_Refuses(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	for _, c := range []struct {
		tool string
		args any
	}{
		{"touch", map[string]any{"path": "a"}},
		{"touch", map[string]any{"path": "~/a"}},
		{"touch", map[string]any{"path": 1}},
		{"touch", map[string]any{"path": "/a", "mode": "0777"}},
		{"touch", map[string]any{"path": "/a", "PATH": "/b"}},
		{"touch", raw(`{"path":"/a","path":"/b"}`)},
		{"touch", []string{"/a"}},
		{"remove", map[string]any{}},
	} {
		if said := g.call(c.tool, c.args); !strings.HasPrefix(said, "-32602 ") && !strings.HasPrefix(said, "-32600 ") {
			t.Errorf("%s %s: %s, want an error", c.tool, c.args, said)
		}
	}
}

// raw is JSON as it is.
type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// TestMCP_Large holds that large arguments and many calls at once are decided, each for itself.
func TestMCP_Large(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	text := strings.Repeat("x", 2<<20)
	said := g.call("touch", map[string]any{"path": filepath.Join(g.project, "large"), "text": text})
	g.check("large", said, "ok ", true)
	said = g.call("touch", map[string]any{"path": filepath.Join(g.project, "denied"), "text": text})
	g.check("denied", said, "error denied", false)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			name, want, made := fmt.Sprintf("file%d", i), "ok ", true
			if i%2 == 1 {
				name, want, made = fmt.Sprintf("denied%d", i), "error denied", false
			}
			g.check(name, g.touch(name), want, made)
		})
	}
	wg.Wait()
}

// TestMCP_Fails holds that nothing reaches the server if writ stands still, is gone or is another server.
func TestMCP_Fails(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t, "--timeout", "1s")
	g.check("a", g.touch("a"), "ok ", true)
	must(t, g.server.Process.Signal(syscall.SIGSTOP))
	g.check("slow", g.touch("slow"), "-32603 writ could not decide: ", false)
	must(t, g.server.Process.Kill())
	_ = g.server.Wait()
	g.check("dead", g.touch("dead"), "-32603 writ could not decide: ", false)
	ln, err := net.Listen("tcp", strings.TrimPrefix(g.url, "http://"))
	must(t, err)
	for _, answer := range []string{"{}", "not found", `{"ok":true,"approved":true}`, `{"ok":true,"approved":true,"receipt":{"decision":"allow"}}`} {
		other := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, answer)
		})}
		go func() { _ = other.Serve(ln) }()
		g.check("wrong", g.touch("wrong"), "-32603 writ could not decide: ", false)
		must(t, other.Close())
		ln, err = net.Listen("tcp", strings.TrimPrefix(g.url, "http://"))
		must(t, err)
	}
	must(t, ln.Close())
}
