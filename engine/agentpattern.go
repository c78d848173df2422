package engine

import (
	"fmt"
	"strings"

	"writ.example/writ/engine/glob"
)

// AgentPattern selects agents, as the agent_id of a policy does. The pattern is one id, a glob over
// ids, or "*" alone for every agent. Ids are compared exactly. An AgentPattern is safe for
// concurrent use.
type AgentPattern struct {
	text string
	set  *glob.List // nil if text is an id or "*"
}

// CompileAgentPattern compiles a pattern. Its error is an [*InvalidError] that names field.
func CompileAgentPattern(field, text string) (*AgentPattern, error) {
	var p problems
	p.agentPattern(field, text)
	if err := p.err(); err != nil {
		return nil, err
	}
	a := &AgentPattern{text: text}
	if text == anyAgent || !glob.HasMeta(text) {
		return a, nil
	}
	set, err := glob.CompileSet([]string{text})
	if err != nil {
		return nil, fmt.Errorf("compiling an agent pattern: %w", err)
	}
	a.set = set
	return a, nil
}

// Folded returns the pattern for the keys of the agents that a matches: see [AgentNames]. If a cannot
// be folded, Folded returns a.
func (a *AgentPattern) Folded() *AgentPattern {
	text := FoldID(a.text)
	special := func(r rune) rune {
		if glob.HasMeta(string(r)) {
			return r
		}
		return -1
	}
	// Folding would make a wildcard of a plain character.
	if strings.Map(special, text) != strings.Map(special, a.text) {
		return a
	}
	folded, err := CompileAgentPattern("agent_id", text)
	if err != nil {
		return a
	}
	return folded
}

// String returns the pattern as it was written.
func (a *AgentPattern) String() string { return a.text }

// Size returns the approximate size of a in memory, in bytes.
func (a *AgentPattern) Size() int {
	n := len(a.text) + 32
	if a.set != nil {
		n += a.set.Size()
	}
	return n
}

// IsID reports whether a is one agent's id.
func (a *AgentPattern) IsID() bool { return a.text != anyAgent && a.set == nil }

// Matches reports whether a matches the agent's id. The empty id never matches, because no agent
// has it.
func (a *AgentPattern) Matches(agentID string) bool {
	if agentID == "" {
		return false
	}
	if a.text == anyAgent || a.text == agentID {
		return true
	}
	return a.set != nil && a.set.Match(agentID) >= 0
}

// Covers reports whether a matches every agent that the pattern text matches. Covers is never wrong
// when it returns true. For a glob it may return false although a covers the glob. It returns true
// in three cases: both patterns are equal, text is an id that a matches, or a is a literal text
// before ** and text begins with that literal.
func (a *AgentPattern) Covers(text string) bool {
	if a.text == anyAgent || a.text == text {
		return true
	}
	if text != anyAgent && !glob.HasMeta(text) {
		return a.Matches(text)
	}
	literal, open := strings.CutSuffix(a.text, "**")
	return open && !glob.HasMeta(literal) && strings.HasPrefix(text, literal)
}
