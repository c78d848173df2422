package api

import (
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
