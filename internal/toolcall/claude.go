package toolcall

// ClaudeAnswer is the answer of a hook to Claude Code about a call that is about to be made. Without an
// output Claude Code's own permissions decide.
type ClaudeAnswer struct {
	Output *ClaudeOutput `json:"hookSpecificOutput,omitzero"`
}

// ClaudeOutput is a decision about a call: allow, deny, ask or defer.
type ClaudeOutput struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason"`
}

// AnswerClaude returns the answer with a decision and its reason.
func AnswerClaude(decision, reason string) ClaudeAnswer {
	return ClaudeAnswer{&ClaudeOutput{Event: before[Claude][0], Decision: decision, Reason: reason}}
}
