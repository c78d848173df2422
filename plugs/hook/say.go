package hook

import (
	"encoding/json"
	"fmt"
	"strings"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

// denied blocks a call.
func denied(why string) answer {
	return answer{code: blocked, err: "writ denied this " + plug.OneLine(why)}
}

// say answers with a decision in the harness's words.
func (h *Hook) say(d writ.Decision) answer {
	reasons := strings.Join(d.Reasons, "; ")
	switch {
	case d.Allowed():
		return h.allowed("writ allowed this (decision " + d.ID + ")")
	case d.Outcome != writ.ApprovalRequired:
		return denied("(decision " + d.ID + "): " + reasons)
	}
	text := plug.OneLine("writ: held, approval " + d.ID + ": " + reasons)
	switch h.Held {
	case HeldAsk:
		return h.ask(text)
	case HeldDefer:
		return ofClaude("defer", text)
	}
	return answer{code: blocked, err: text + "; call again once approved"}
}

func (h *Hook) allowed(text string) answer {
	switch {
	case h.Harness == toolcall.Cursor:
		return printed(map[string]string{"permission": "allow"})
	case h.AutoApprove:
		return ofClaude("allow", text)
	}
	return answer{out: "{}\n"}
}

// ask has the harness ask the local user.
func (h *Hook) ask(text string) answer {
	switch h.Harness {
	case toolcall.Gemini:
		return printed(map[string]string{"decision": "ask", "reason": text})
	case toolcall.Cursor:
		return printed(map[string]string{"permission": "ask", "user_message": text, "agent_message": text})
	}
	return ofClaude("ask", text)
}

func ofClaude(decision, reason string) answer {
	return printed(toolcall.AnswerClaude(decision, reason))
}

func printed(v any) answer {
	data, err := json.Marshal(v)
	if err != nil {
		return undecided(fmt.Errorf("writing the answer: %w", err))
	}
	return answer{out: string(data) + "\n"}
}
