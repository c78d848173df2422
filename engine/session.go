package engine

import (
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// SessionStatus says whether a session can be used.
type SessionStatus string

// The statuses of a session. A closed session stays closed.
const (
	SessionActive SessionStatus = "active"
	SessionClosed SessionStatus = "closed"
)

// Session narrows a policy to one task of one agent until the session expires. A member that is
// left out does not narrow the policy. No member allows more than the policy does.
type Session struct {
	Stored
	ID       string `json:"session_id"`
	PolicyID string `json:"policy_id"`
	AgentID  string `json:"agent_id"`
	// The lists have the same meaning as in an [ActionPolicy]. A nil list narrows nothing.
	AllowedActionTypes      []string `json:"allowed_action_types,omitzero"`
	AllowedResourcePatterns []string `json:"allowed_resource_patterns,omitzero"`
	// MaxCostMinor is the greatest cost of each action, in minor units.
	MaxCostMinor *int64        `json:"max_cost_minor,omitzero"`
	Status       SessionStatus `json:"status"`
	CreatedAt    time.Time     `json:"created_at"`
	ExpiresAt    time.Time     `json:"expires_at"`
	ClosedAt     time.Time     `json:"closed_at,omitzero"`
}

// The members of a session that checks read, by their names in [Checked].
const (
	fieldSessionPolicy    = "session.policy_id"
	fieldSessionAgent     = "session.agent_id"
	fieldSessionTypes     = "session.allowed_action_types"
	fieldSessionPatterns  = "session.allowed_resource_patterns"
	fieldSessionMaxCost   = "session.max_cost_minor"
	fieldSessionStatus    = "session.status"
	fieldSessionExpiresAt = "session.expires_at"
)

// Validate returns an [*InvalidError], or nil. The error names every invalid member that narrows
// the policy. The policy's UUID must be in lower case.
func (s *Session) Validate() error {
	var p problems
	p.uuid("policy_id", s.PolicyID)
	p.text("agent_id", s.AgentID, condition.MaxLabel)
	const empty = "is empty: leave it out, or name what the task needs"
	if s.AllowedActionTypes != nil && len(s.AllowedActionTypes) == 0 {
		p.add("allowed_action_types", empty)
	}
	if s.AllowedResourcePatterns != nil && len(s.AllowedResourcePatterns) == 0 {
		p.add("allowed_resource_patterns", empty)
	}
	p.actionTypes("allowed_action_types", s.AllowedActionTypes)
	if p.length("allowed_resource_patterns", len(s.AllowedResourcePatterns)) {
		p.patterns("allowed_resource_patterns", s.AllowedResourcePatterns, resource.ForAllow)
	}
	if s.MaxCostMinor != nil {
		p.amount("max_cost_minor", *s.MaxCostMinor)
	}
	return p.err()
}

// checks returns the checks of a session, in the order of their findings. All of them deny:
//
//	session.closed        the session is closed
//	session.expired       its time is over
//	session.not_allowed   it is another agent's or another policy's, or it does not allow the
//	                      action type, the resource or the cost
func (s *Session) checks() []Check {
	check := func(code Code, field, reason string, tree *condition.Node, holds func(*scope, evaluation) bool) Check {
		r := &checkRow{code: code, outcome: Deny, field: field, reason: string(code) + ": " + reason, holds: holds}
		return Check{Code: code, Outcome: Deny, Reason: r.reason, Holds: tree, row: r}
	}
	checks := []Check{
		check(CodeSessionClosed, fieldSessionStatus, "the session is closed",
			condition.Negate(isSet(condition.SessionClosed)),
			func(_ *scope, e evaluation) bool { return e.in.Session.doc.Status == SessionActive }),
		check(CodeSessionExpired, fieldSessionExpiresAt, "the session has expired",
			condition.Negate(isSet(condition.SessionExpired)),
			func(_ *scope, e evaluation) bool { return !e.in.Session.Expired }),
		check(CodeSessionNotAllowed, fieldSessionAgent, "the session is another agent's",
			isSet(condition.SessionOwn), func(_ *scope, e evaluation) bool { return e.in.Session.Own(e.in) }),
		check(CodeSessionNotAllowed, fieldSessionPolicy, "the session is of another policy",
			asks(condition.PolicyID, condition.Eq, s.PolicyID),
			func(_ *scope, e evaluation) bool { return e.in.Intent.PolicyID == s.PolicyID }),
	}
	if s.AllowedActionTypes != nil {
		c := check(CodeSessionNotAllowed, fieldSessionTypes, "the action type matches none that the session allows",
			asks(condition.ActionType, condition.ActionGlob, s.AllowedActionTypes...), typeAllowed)
		c.row.entries = func(*ActionPolicy) []string { return s.AllowedActionTypes }
		c.row.actions = func(s *scope) *glob.Actions { return &s.allowed }
		checks = append(checks, c)
	}
	if len(s.AllowedResourcePatterns) > 0 {
		c := check(CodeSessionNotAllowed, fieldSessionPatterns,
			"the resource matches no pattern that the session allows",
			reads(resource.ForAllow, s.AllowedResourcePatterns), resourceAllowed)
		c.row.entries = func(*ActionPolicy) []string { return s.AllowedResourcePatterns }
		c.row.patterns = func(s *scope) *glob.List { return &s.permitted }
		checks = append(checks, c)
	}
	if s.MaxCostMinor != nil {
		checks = append(checks, check(CodeSessionNotAllowed, fieldSessionMaxCost,
			fmt.Sprintf("the cost is above the session's cap of %d minor units", *s.MaxCostMinor),
			costWithinCap(s.narrows()), costAllowed))
	}
	return checks
}

// narrows returns a policy with the members by which the session narrows.
func (s *Session) narrows() *ActionPolicy {
	return &ActionPolicy{
		AgentID: anyAgent, AllowedActionTypes: s.AllowedActionTypes, AllowedResourcePatterns: s.AllowedResourcePatterns,
		MaxCostMinor: s.MaxCostMinor,
	}
}

// CompiledSession is a compiled session, ready to narrow evaluations. It is immutable and safe for
// concurrent use.
type CompiledSession struct {
	doc *Session
	*scope
	rows []*checkRow
}

// CompileSession compiles a session. It keeps s, so s must not be modified afterwards. It refuses
// every session that [Session.Validate] refuses, with an [*InvalidError].
func CompileSession(s *Session) (*CompiledSession, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	narrow, err := compileScope(s.narrows())
	if err != nil {
		return nil, err
	}
	c := &CompiledSession{doc: s, scope: narrow}
	for _, check := range s.checks() {
		c.rows = append(c.rows, check.row)
	}
	return c, nil
}

// Document returns the compiled session's document. It must not be modified.
func (c *CompiledSession) Document() *Session { return c.doc }

// Expired reports whether the session has expired at a time.
func (c *CompiledSession) Expired(at time.Time) bool { return !at.Before(c.doc.ExpiresAt) }

// Size returns the approximate size of the session in memory, in bytes.
func (c *CompiledSession) Size() int {
	size := int(unsafe.Sizeof(*c)+unsafe.Sizeof(*c.doc)) + len(c.doc.ID) + len(c.doc.PolicyID) + len(c.doc.AgentID)
	for _, list := range [][]string{c.doc.AllowedActionTypes, c.doc.AllowedResourcePatterns} {
		for _, s := range list {
			size += len(s) + int(unsafe.Sizeof(s))
		}
	}
	for _, r := range c.rows {
		size += int(unsafe.Sizeof(r)+unsafe.Sizeof(*r)) + len(r.reason)
	}
	size += c.size()
	return size
}

// InSession is the session in which an intent is proposed. The zero value means no session.
type InSession struct {
	*CompiledSession
	// Expired says that the session has expired.
	Expired bool
}

// Own reports whether the session belongs to the agent of in. A session belongs to an agent if it
// began under one of the agent's names.
func (s *InSession) Own(in *Input) bool {
	return in.Intent.AgentID == s.doc.AgentID || in.AgentNames().Has(s.doc.AgentID)
}

// check returns the findings of the session's checks that fail, nil if none fails.
func (s *InSession) check(e *evaluation) (findings []Finding) {
	_, err := e.in.Intent.Readings()
	first := 0 // the index of the first check in the trace
	if e.in.Trace != nil {
		first = len(e.in.Trace.Checks) - len(s.rows)
	}
	for i, r := range s.rows {
		if err == nil || r.patterns == nil { // a resource that cannot be read is denied already
			findings = r.evaluate(s.scope, e, first+i, findings)
		}
	}
	return findings
}

// valueOf returns the value of a member. It is empty if the member is a list.
func (s *Session) valueOf(field string) string {
	switch field {
	case fieldSessionAgent:
		return s.AgentID
	case fieldSessionPolicy:
		return s.PolicyID
	case fieldSessionStatus:
		return string(s.Status)
	case fieldSessionExpiresAt:
		return s.ExpiresAt.UTC().Format(time.RFC3339)
	case fieldSessionMaxCost:
		return strconv.FormatInt(*s.MaxCostMinor, 10)
	}
	return ""
}

// gotInSession returns the intent's value with which a check compares the session's member.
func gotInSession(in *Intent, field string) string {
	switch field {
	case fieldSessionAgent:
		return in.AgentID
	case fieldSessionPolicy:
		return in.PolicyID
	case fieldSessionTypes:
		return in.ActionType
	case fieldSessionMaxCost:
		if in.Cost != nil {
			return strconv.FormatInt(in.Cost.AmountMinor, 10)
		}
	}
	return ""
}
