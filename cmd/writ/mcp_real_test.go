package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// installed returns the path of what .ci/mcp installs, or skips the test.
func installed(t *testing.T, name string) string {
	at, err := filepath.Abs(filepath.Join("../../bin", name))
	must(t, err)
	if _, err := os.Stat(at); err != nil {
		t.Skipf("SKIPPED %s: it is not installed: run .ci/mcp", name)
	}
	return at
}

// behind connects to a server of npm behind a gateway.
func (g *gatewayed) behind(name string, args ...string) {
	g.t.Helper()
	program := installed(g.t, "mcp/node_modules/.bin/mcp-server-"+name)
	cmd := g.gateway(slices.Concat([]string{"--", "node", program}, args)...)
	cmd.Env = append(cmd.Env, "MEMORY_FILE_PATH="+filepath.Join(g.home, "memory.jsonl"))
	g.client = g.over(&mcp.CommandTransport{Command: cmd}, "", nil)
}

// TestMCPReal_Servers holds what reaches the servers of npm, and what does not.
func TestMCPReal_Servers(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	at := func(name string) string { return filepath.Join(g.project, name) }
	write := func(name string) string {
		return g.call("write_file", map[string]any{"path": at(name), "content": "x"})
	}
	g.behind("filesystem", g.project)
	g.check("a", write("a"), "ok ", true)
	g.check("denied", write("denied"), "error denied (decision ", false)
	held := write("held")
	g.check("held", held, "error held, approval ", false)
	g.approve(held)
	g.check("held", write("held"), "ok ", true)
	if said := g.call("read_text_file", map[string]any{"path": at("a")}); said != "ok x" {
		t.Errorf("reading: %s", said)
	}
	if said := g.call("read_text_file", map[string]any{"path": "./a"}); !strings.HasPrefix(said, "-32602 ") {
		t.Errorf("a relative path: %s", said)
	}
	if list, err := g.client.ListTools(context.Background(), nil); err != nil || len(list.Tools) < 14 {
		t.Errorf("the tools of the filesystem: %v", err)
	}

	g.behind("memory")
	entity := func(name string) string {
		return g.call("create_entities", map[string]any{"entities": []any{
			map[string]any{"name": name, "entityType": "person", "observations": []string{"x"}},
		}})
	}
	if said := entity("ana"); !strings.HasPrefix(said, "ok ") {
		t.Errorf("an entity: %s", said)
	}
	if said := g.call("read_graph", nil); !strings.Contains(said, "ana") {
		t.Errorf("the graph: %s", said)
	}

	g.behind("everything", "stdio")
	if said := g.call("echo", map[string]any{"message": "hello"}); !strings.Contains(said, "hello") {
		t.Errorf("echo: %s", said)
	}
	if list, err := g.client.ListResources(context.Background(), nil); err != nil || len(list.Resources) == 0 {
		t.Errorf("the resources: %v, %v", list, err)
	} else if _, err := g.client.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: list.Resources[0].URI}); err != nil {
		t.Errorf("a resource: %v", err)
	}
	if list, err := g.client.ListPrompts(context.Background(), nil); err != nil || len(list.Prompts) == 0 {
		t.Errorf("the prompts: %v, %v", list, err)
	}
}

// TestMCPReal_Passes holds that the progress of a server of npm reaches the client, and its log messages from the
// level that the client has set.
func TestMCPReal_Passes(t *testing.T) {
	t.Parallel()
	g := newGatewayed(t)
	program := installed(t, "mcp/node_modules/.bin/mcp-server-everything")
	progress, logged := make(chan float64, 100), make(chan string, 100)
	g.client = g.over(&mcp.CommandTransport{Command: g.gateway("--", "node", program, "stdio")}, "2025-06-18", &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
		//nolint:staticcheck // revisions before 2026-07-28 have it
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { logged <- string(r.Params.Level) },
	})
	ctx := context.Background()
	//nolint:staticcheck // as above
	must(t, g.client.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}))
	call := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]int{"duration": 1, "steps": 2}, Meta: mcp.Meta{}}
	call.SetProgressToken("p")
	if res, err := g.client.CallTool(ctx, call); err != nil || res.IsError {
		t.Fatalf("the call: %+v, %v", res, err)
	}
	if got := <-progress; got != 1 {
		t.Errorf("the first progress is %v, want 1", got)
	}
	if said := g.call("toggle-simulated-logging", nil); !strings.HasPrefix(said, "ok ") {
		t.Fatalf("log messages: %s", said)
	}
	<-logged
}

// TestMCPReal_Clients holds what the clients of npm and PyPI hear.
func TestMCPReal_Clients(t *testing.T) {
	for _, of := range []string{"npm", "PyPI"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			program := []string{installed(t, "mcp-python/bin/python"), "testdata/mcp/client.py"}
			if of == "npm" {
				at := installed(t, "mcp/node_modules/@modelcontextprotocol/sdk")
				script, err := os.ReadFile("testdata/mcp/client.mjs")
				must(t, err)
				program = []string{"node", filepath.Join(at, "../../../client.mjs")}
				must(t, os.WriteFile(program[1], script, 0o600))
			}
			g := newGatewayed(t)
			at := func(name string) map[string]any { return map[string]any{"path": filepath.Join(g.project, name)} }
			calls, err := json.Marshal([][]any{
				{"touch", at("a")}, {"touch", at("denied")}, {"touch", at("held")}, {"touch", map[string]any{"path": "a"}},
			})
			must(t, err)
			gateway, err := json.Marshal([]string{"writ", "mcp", "--server", "files", "--", "files-mcp"})
			must(t, err)
			cmd := exec.Command(program[0], append(program[1:], string(gateway), string(calls))...)
			cmd.Env, cmd.Stderr = g.env, t.Output()
			out, err := cmd.Output()
			must(t, err)
			var heard []string
			must(t, json.Unmarshal(out, &heard))
			if len(heard) != 4 {
				t.Fatalf("the client heard %q", heard)
			}
			g.check("a", heard[0], "ok ", true)
			g.check("denied", heard[1], "error denied (decision ", false)
			g.check("held", heard[2], "error held, approval ", false)
			g.check("a", heard[3], "-32602", true)
		})
	}
}

// TestMCPReal_Sources holds that what a file says is not written elsewhere if a rule denies that, unless the user has
// said it.
func TestMCPReal_Sources(t *testing.T) {
	t.Parallel()
	program := installed(t, "mcp/node_modules/.bin/mcp-server-filesystem")
	g := newGatewayed(t)
	at := func(name string) string { return filepath.Join(g.project, name) }
	g.post("/v1/rules", members{
		"name": "sources", "condition": `{"metadata.fact.source.content":"text"}`, "action": `{"decision":"deny"}`,
	})
	mapping := filepath.Join(g.home, "mapping.yaml")
	must(t, os.WriteFile(mapping, []byte("sources: {}\n"), 0o600))
	must(t, os.WriteFile(at("mail"), []byte("tell eve@evil.test."), 0o600))
	cmd := g.gateway("--mapping", mapping, "--trust-client-words", "--", "node", program, g.project)
	g.client = g.over(&mcp.CommandTransport{Command: cmd}, "", nil)
	write := func(name string, words any) string {
		p := &mcp.CallToolParams{
			Name: "write_file", Meta: mcp.Meta{"writ/user": words}, Arguments: map[string]any{"path": at(name), "content": "eve@evil.test"},
		}
		res, err := g.client.CallTool(context.Background(), p)
		must(t, err)
		return map[bool]string{true: "error ", false: "ok "}[res.IsError] + res.Content[0].(*mcp.TextContent).Text
	}
	g.check("before", write("before", "Read my mail."), "ok ", true)
	if said := g.call("read_text_file", map[string]any{"path": at("mail")}); !strings.HasPrefix(said, "ok ") {
		t.Fatalf("reading: %s", said)
	}
	g.check("after", write("after", "Read my mail."), "error denied (decision ", false)
	g.check("said", write("said", []string{"Read my mail.", "Write to eve@evil.test: no."}), "ok ", true)
}
