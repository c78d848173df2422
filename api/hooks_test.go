package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"writ.example/writ/internal/toolcall"
)

// TestHookClaude holds what Claude Code is told: nothing of an allow, a deny, and of a held call what
// the hook asks for, until the same call redeems its approval, once.
func TestHookClaude(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"allowed_action_types": []string{"shell.exec"}, "allowed_resource_patterns": []string{"**"}, "agent_id": "**"})
	h.rule(acme, `{"metadata.fact.arg.command":{"$glob":"rm *"}}`, `{"decision":"approval_required"}`)
	mint := func(body obj) string {
		body["name"], body["scopes"] = "hook", []string{"policy:evaluate", "facts:assert"}
		return read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(acme), body).wantStatus(http.StatusCreated)).Token
	}
	key := mint(obj{"policy_id": policyID, "agent_id": "claude/ana"})
	call := func(id, command string) obj {
		return obj{
			"session_id": "s", "hook_event_name": "PreToolUse", "cwd": "/srv", "tool_name": "Bash", "tool_use_id": id,
			"tool_input": obj{"command": command}, "unknown": true,
		}
	}
	ask := func(query string, body obj) (decision, reason string) {
		t.Helper()
		a := read[toolcall.ClaudeAnswer](h.do("POST", "/v1/hooks/claude"+query, key, body).wantStatus(http.StatusOK))
		if a.Output == nil {
			return "", ""
		}
		return a.Output.Decision, a.Output.Reason
	}
	for range 2 { // a repeated hook is a replay
		if d, reason := ask("", call("t1", "ls")); d != "" {
			t.Errorf("an allow is answered with %s, %s", d, reason)
		}
	}
	edit := obj{"session_id": "s", "cwd": "/srv", "tool_name": "Write", "tool_use_id": "t2", "tool_input": obj{"file_path": "/etc/hosts"}}
	if d, reason := ask("", edit); d != "deny" || !strings.HasPrefix(reason, "writ denied this (decision ") {
		t.Errorf("a deny is answered with %s, %s", d, reason)
	}
	for query, want := range map[string]string{"": "deny", "?held=ask": "ask", "?held=defer": "defer"} {
		if d, reason := ask(query, call("t3", "rm x")); d != want || !strings.HasPrefix(reason, "writ: held, approval ") {
			t.Errorf("with %q a held call is answered with %s, %s", query, d, reason)
		}
	}
	_, reason := ask("", call("t3", "rm x"))
	id := strings.TrimSuffix(strings.Fields(reason)[3], ":")
	h.do("PATCH", "/v1/approvals/"+id, h.operator(acme), obj{"status": "approved"}).wantStatus(http.StatusOK)
	h.do("POST", "/v1/hooks/claude", key, call("t3", "rm y")).wantProblem(http.StatusConflict, codeIntentConflict)
	if d, reason := ask("", call("t3", "rm x")); d != "" {
		t.Errorf("after the approval: %s, %s", d, reason)
	}
	if d, reason := ask("", call("t3", "rm x")); d != "deny" || !strings.Contains(reason, "was used") {
		t.Errorf("the approval again: %s, %s", d, reason)
	}

	for _, body := range []obj{{}, {"tool_name": "Bash"}, {"tool_name": 1}, {"tool_name": "Bash", "cwd": "srv"}} {
		h.do("POST", "/v1/hooks/claude", key, body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
	h.do("POST", "/v1/hooks/claude?held=wait", key, call("t4", "ls")).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	for _, binding := range []obj{{}, {"policy_id": policyID}, {"agent_id": "claude/ana"}, {"policy_id": policyID, "agent_id": "claude/**"}} {
		h.do("POST", "/v1/hooks/claude", mint(binding), call("t5", "ls")).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
}

// TestHookClaude_Files holds that a call that names several files runs if each is allowed, and that a file is held with
// the others.
func TestHookClaude_Files(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"allowed_action_types": []string{"file.write"}, "allowed_resource_patterns": []string{"/srv/**"}, "agent_id": "**"})
	h.rule(acme, `{"resource":{"$glob":"/srv/held/*"}}`, `{"decision":"approval_required"}`)
	key := read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(acme), obj{
		"name": "hook", "scopes": []string{"policy:evaluate", "facts:assert"}, "policy_id": policyID, "agent_id": "claude/ana",
	}).wantStatus(http.StatusCreated)).Token
	call := func(id string, files ...string) obj {
		var edits []obj
		for _, f := range files {
			edits = append(edits, obj{"file_path": f})
		}
		return obj{"session_id": "s", "cwd": "/srv", "tool_name": "MultiEdit", "tool_use_id": id, "tool_input": obj{"edits": edits}}
	}
	ask := func(id string, files ...string) (decision, reason string) {
		t.Helper()
		a := read[toolcall.ClaudeAnswer](h.do("POST", "/v1/hooks/claude", key, call(id, files...)).wantStatus(http.StatusOK))
		if a.Output == nil {
			return "", ""
		}
		return a.Output.Decision, a.Output.Reason
	}
	want := func(name, said string, decision, reason string) {
		t.Helper()
		if said == "" && decision != "" || said != "" && (decision != "deny" || !strings.Contains(reason, said)) {
			t.Errorf("%s: %s, %s, want %q", name, decision, reason, said)
		}
	}
	wants := func(name, said, id string, files ...string) {
		t.Helper()
		decision, reason := ask(id, files...)
		want(name, said, decision, reason)
	}
	for range 2 { // a repeated hook is a replay
		wants("all allowed", "", "t1", "a", "/srv/b", "./a")
		wants("one denied", "resource.not_allowed", "t2", "a", "/etc/hosts", "held/c")
	}
	approve := func(verdict, reason string) {
		t.Helper()
		id := strings.TrimSuffix(strings.Fields(reason)[3], ":")
		h.do("PATCH", "/v1/approvals/"+id, h.operator(acme), obj{"status": verdict}).wantStatus(http.StatusOK)
	}
	var reason string
	for range 2 { // the others are not decided for good while there is no verdict
		_, reason = ask("t3", "a", "held/c", "b")
		want("one held", "writ: held, approval ", "deny", reason)
	}
	approve("approved", reason)
	wants("one approved", "", "t3", "a", "held/c", "b")
	wants("the approval again", "was used", "t3", "a", "held/c", "b")
	_, reason = ask("t4", "held/c", "held/d")
	approve("approved", reason)
	wants("one of two approved", "writ: held, approval ", "t4", "held/c", "held/d")
	second := toolcall.Following(toolcall.Call{Session: "s", ID: "t4"}.IntentID(), 1)
	rows := read[page[obj]](h.do("GET", "/v1/authorizations?intent_id="+second, h.operator(acme), nil))
	approve("approved", fmt.Sprint("writ: held, approval ", rows.Data[0]["decision_id"]))
	wants("both approved", "", "t4", "held/c", "held/d")
	_, reason = ask("t5", "a", "held/c")
	approve("rejected", reason)
	wants("rejected", "rejected", "t5", "a", "held/c")

	var many []string
	for i := range 101 {
		many = append(many, fmt.Sprint("f", i))
	}
	h.do("POST", "/v1/hooks/claude", key, call("t6", many...)).wantProblem(http.StatusBadRequest, codeInvalidRequest)
}

// TestHookClaude_Foreign holds that another organization's calls of the same ids are no conflict, and tell nothing.
func TestHookClaude_Foreign(t *testing.T) {
	h := start(t)
	body := obj{"session_id": "s", "cwd": "/srv", "tool_name": "Bash", "tool_use_id": "t", "tool_input": obj{"command": "ls"}}
	for _, org := range []string{acme, rival} {
		h.register(org, obj{"allowed_action_types": []string{}, "agent_id": "**"})
		token := read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(org), obj{
			"name": "hook", "scopes": []string{"policy:evaluate", "facts:assert"}, "policy_id": policyID, "agent_id": "a",
		}).wantStatus(http.StatusCreated)).Token
		r := h.do("POST", "/v1/hooks/claude", token, body).wantStatus(http.StatusOK)
		if r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s got the answer of another organization", org)
		}
		if a := read[toolcall.ClaudeAnswer](r); a.Output == nil || a.Output.Decision != "deny" {
			t.Errorf("%s: %+v", org, a)
		}
	}
}
