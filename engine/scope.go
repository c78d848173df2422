package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// scope has the compiled values with which the checks of a policy or of a session compare an
// intent. If the policy or the session does not have a list, the list is empty here and its check
// is left out.
//
// Checks run as Go code over these lists, which are in few pieces of memory. With programs of
// predicates instead, a decision under one of 1,000 policies took 6.7 µs instead of 1 µs. No cache
// holds that many policies.
type scope struct {
	agent              AgentPattern
	allowed, denied    glob.Actions
	permitted, blocked glob.List
	maxCost            int64
	// lists are the lists of the policy: see [ActionPolicy.lists].
	lists [4][]string
}

func compileScope(p *ActionPolicy) (*scope, error) {
	agent, agentErr := CompileAgentPattern(fieldAgentID, p.AgentID)
	allowed, allowedErr := glob.CompileActions(p.AllowedActionTypes)
	denied, deniedErr := glob.CompileDenied(p.DeniedActionTypes)
	permitted, permittedErr := glob.Compile(p.AllowedResourcePatterns, resource.ForAllow)
	blocked, blockedErr := glob.Compile(p.BlockedResourcePatterns, resource.ForBlock)
	if err := errors.Join(agentErr, allowedErr, deniedErr, permittedErr, blockedErr); err != nil {
		return nil, fmt.Errorf("compiling the checks: %w", err)
	}
	s := &scope{agent: *agent, allowed: *allowed, denied: *denied, permitted: *permitted, blocked: *blocked,
		maxCost: maxCostOf(p)}
	glob.Pack(s.allowed.List(), s.denied.List(), &s.permitted, &s.blocked)
	for i, list := range p.lists() {
		s.lists[i] = slices.Clone(*list)
	}
	return s, nil
}

// scopes has the scopes of the policies in use.
var scopes shared[scope]

// sharedScope returns the scope of p. Policies with equal lists, agent and cap share one scope.
func sharedScope(p *ActionPolicy) (*scope, error) {
	lists := p.lists()
	source := make([]byte, 0, 4<<10)
	text := func(s string) { source = append(binary.AppendUvarint(source, uint64(len(s))), s...) }
	for _, list := range lists {
		source = binary.AppendUvarint(source, uint64(len(*list)))
		for _, s := range *list {
			text(s)
		}
	}
	text(p.AgentID)
	return scopes.get(binary.AppendVarint(source, maxCostOf(p)), func() (*scope, error) { return compileScope(p) })
}

func maxCostOf(p *ActionPolicy) int64 {
	if p.MaxCostMinor == nil {
		return 0
	}
	return *p.MaxCostMinor
}

// size returns the approximate size of s on the heap, in bytes.
func (s *scope) size() int {
	return int(
		unsafe.Sizeof(*s),
	) + s.agent.Size() + s.allowed.Size() + s.denied.Size() + s.permitted.Size() + s.blocked.Size()
}

func typeAllowed(s *scope, e evaluation) bool { return s.allowed.Match(e.in.Intent.ActionType) >= 0 }

func resourceAllowed(s *scope, e evaluation) bool { return s.permitted.Holds(e.Readings()) }

func costAllowed(s *scope, e evaluation) bool {
	return e.in.Intent.Cost == nil || e.in.Intent.Cost.AmountMinor <= s.maxCost
}
