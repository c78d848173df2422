package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// wanted is a call that the model asks for: a shell command, a file to write, or a tool of the MCP server.
type wanted struct{ shell, write, mcp string }

// model answers as the models of the three harnesses: it asks for its calls, one after another, and
// then it is done.
type model struct {
	*httptest.Server
	t     *testing.T
	calls []wanted
	heard []string // what the harness said about each call
}

func newModel(t *testing.T, calls ...wanted) *model {
	m := &model{t: t, calls: calls}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.anthropic)
	mux.HandleFunc("POST /v1/responses", m.openai)
	mux.HandleFunc("POST /v1beta/models/{call}", m.google)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// next returns the call that follows on the results so far, or nothing.
func (m *model) next(results []string) (wanted, bool) {
	m.heard = results
	if len(results) >= len(m.calls) {
		return wanted{}, false
	}
	return m.calls[len(results)], true
}

// event writes a server-sent event.
func event(w http.ResponseWriter, name string, v map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	if name != "" {
		v["type"] = name
		fmt.Fprintf(w, "event: %s\n", name)
	}
	data, _ := json.Marshal(v) // maps of texts and numbers
	fmt.Fprintf(w, "data: %s\n\n", data)
}

type members = map[string]any

func (m *model) anthropic(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tools    []members
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	var results []string
	for _, message := range in.Messages {
		var blocks []struct {
			Type    string
			Content any
		}
		_ = json.Unmarshal(message.Content, &blocks) // a text has no results
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, fmt.Sprint(b.Content))
			}
		}
	}
	block, delta, stop := members{"type": "text", "text": ""}, members{"type": "text_delta", "text": "done"}, "end_turn"
	if len(in.Tools) > 0 { // it is not a title that is asked for
		if c, ok := m.next(results); ok {
			name, args := "Bash", members{"command": c.shell, "description": "d"}
			switch {
			case c.write != "":
				name, args = "Write", members{"file_path": c.write, "content": "x"}
			case c.mcp != "":
				name, args = "mcp__files__make", members{"target": c.mcp}
			}
			text, _ := json.Marshal(args)
			block = members{"type": "tool_use", "id": fmt.Sprintf("toolu_%d_%p", len(results), m), "name": name, "input": members{}}
			delta, stop = members{"type": "input_json_delta", "partial_json": string(text)}, "tool_use"
		}
	}
	event(w, "message_start", members{"message": members{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []any{},
		"stop_reason": nil, "usage": members{"input_tokens": 1, "output_tokens": 1},
	}})
	event(w, "content_block_start", members{"index": 0, "content_block": block})
	event(w, "content_block_delta", members{"index": 0, "delta": delta})
	event(w, "content_block_stop", members{"index": 0})
	event(w, "message_delta", members{"delta": members{"stop_reason": stop}, "usage": members{"output_tokens": 1}})
	event(w, "message_stop", members{})
}

func (m *model) openai(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Tools []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		Input []struct {
			Type   string
			Output any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		m.t.Errorf("what Codex asks: %v", err)
	}
	var results, tools []string
	for _, item := range in.Input {
		if strings.HasSuffix(item.Type, "call_output") {
			results = append(results, fmt.Sprint(item.Output))
		}
	}
	namespace := ""
	for _, tool := range in.Tools {
		tools = append(tools, tool.Name)
		if tool.Type == "namespace" && strings.Contains(tool.Name, "files") {
			namespace = tool.Name
		}
	}
	item := members{"type": "message", "role": "assistant", "id": "m", "content": []any{members{"type": "output_text", "text": "done"}}}
	if c, ok := m.next(results); ok {
		name, args := "exec_command", members{"cmd": c.shell}
		if slices.Contains(tools, "shell_command") {
			name, args = "shell_command", members{"command": c.shell}
		}
		if c.mcp != "" {
			name, args = "mcp__files__make", members{"target": c.mcp}
		}
		text, _ := json.Marshal(args)
		item = members{"type": "function_call", "id": "f", "call_id": fmt.Sprintf("call_%d_%p", len(results), m), "name": name, "arguments": string(text)}
		if c.mcp != "" && namespace != "" {
			item["namespace"], item["name"] = namespace, "make"
		}
		if c.write != "" {
			item = members{
				"type": "custom_tool_call", "id": "f", "call_id": item["call_id"], "name": "apply_patch",
				"input": "*** Begin Patch\n*** Add File: " + c.write + "\n+x\n*** End Patch\n",
			}
		}
	}
	event(w, "response.created", members{"response": members{"id": "r"}})
	event(w, "response.output_item.done", members{"item": item})
	event(w, "response.completed", members{"response": members{"id": "r", "usage": members{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
	}}})
}

func (m *model) google(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct{ Response any }
			}
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	var results []string
	for _, content := range in.Contents {
		for _, part := range content.Parts {
			if part.FunctionResponse != nil {
				results = append(results, fmt.Sprint(part.FunctionResponse.Response))
			}
		}
	}
	part := members{"text": "done"}
	if c, ok := m.next(results); ok {
		name, args := "run_shell_command", members{"command": c.shell}
		switch {
		case c.write != "":
			name, args = "write_file", members{"file_path": c.write, "content": "x"}
		case c.mcp != "":
			name, args = "mcp_files_make", members{"target": c.mcp}
		}
		part = members{"functionCall": members{"name": name, "args": args}}
	}
	answer := members{
		"candidates":    []any{members{"content": members{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": members{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}
	if strings.HasSuffix(r.PathValue("call"), ":streamGenerateContent") {
		event(w, "", answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
