package reference

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The JSON members of these documents have the same names as in writ's API. So any other evaluator
// can read the JSON of a Case.
type (
	// Policy is a version of a policy.
	Policy struct {
		PolicyID        string   `json:"policy_id"`
		Version         int      `json:"version"`
		OrganizationID  string   `json:"organization_id"`
		AgentID         string   `json:"agent_id"`
		AllowedTypes    []string `json:"allowed_action_types"`
		DeniedTypes     []string `json:"denied_action_types,omitempty"`
		AllowedPatterns []string `json:"allowed_resource_patterns,omitempty"`
		BlockedPatterns []string `json:"blocked_resource_patterns,omitempty"`
		MaxCostMinor    *int64   `json:"max_cost_minor,omitempty"`
		Currency        string   `json:"currency,omitempty"`
		Status          string   `json:"status"`
		UpdatedAt       string   `json:"updated_at"`
	}
	// Cost is the cost of an action.
	Cost struct {
		AmountMinor int64  `json:"amount_minor"`
		Currency    string `json:"currency"`
	}
	// Intent is the action that a decision is about.
	Intent struct {
		IntentID   string            `json:"intent_id"`
		PolicyID   string            `json:"policy_id"`
		AgentID    string            `json:"agent_id"`
		ActionType string            `json:"action_type"`
		Resource   string            `json:"resource"`
		Cost       *Cost             `json:"cost,omitempty"`
		Metadata   map[string]string `json:"metadata,omitempty"`
		IssuedAt   string            `json:"issued_at"`
	}
	// Agent is a registered agent.
	Agent struct {
		ID         string `json:"id"`
		ExternalID string `json:"externalId,omitempty"`
		Name       string `json:"name"`
		Status     string `json:"status"`
	}
	// Rule is a rule of the organization.
	Rule struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Condition string `json:"condition"`
		Action    string `json:"action"`
		Priority  int    `json:"priority"`
		IsActive  bool   `json:"isActive"`
		CreatedAt string `json:"createdAt"`
		UpdatedAt string `json:"updatedAt"`

		Means    Cond   `json:"-"` // the parsed form of Condition
		Form     Form   `json:"-"`
		Decision string `json:"-"` // the outcome that Action stands for
	}
)

// A Case has all input of a decision.
type Case struct {
	Policy            Policy  `json:"policy"`
	Rules             []Rule  `json:"rules"`
	Agents            []Agent `json:"agents"`
	Intent            Intent  `json:"intent"`
	Stopped           bool    `json:"organization_stopped"`
	UsageExceeded     bool    `json:"usage_exceeded"`
	RequireRegistered bool    `json:"require_registered_agents"`
}

// These are the outcomes and the codes of findings.
const (
	Allow            = "allow"
	ApprovalRequired = "approval_required"
	Deny             = "deny"
)

// severity orders the outcomes. A greater number is stricter.
var severity = map[string]int{Allow: 0, ApprovalRequired: 1, Deny: 2}

// An Outcome is a decision with its findings, in the order of the checks. Codes has their codes,
// sorted and without duplicates.
type Outcome struct {
	Decision string
	Findings []Finding
	Codes    []string
	Notes    Notes
}

// A Finding is a finding as data.
type Finding struct {
	Code, Outcome string
	RuleID        string // the rule that decided; empty for a check
	Field         string // the member of the policy that a check reads; empty for a rule
	// Whys has the possible causes if the condition of the rule could not be evaluated.
	Whys []Why
}

// A Why is the reason for which a condition could not be evaluated.
type Why struct{ Cause, Field string }

// Notes records the events of an evaluation. [Count] counts them.
type Notes struct {
	Blocked, Outside   string // the reader that objected; empty if none did
	BlockedBy          []string
	OutsideOf          []string
	Missing, Erred     bool // a key was missing; a value was not a number
	Undecided          bool // a condition could not be evaluated
	FoldedID, FoldedOp bool // an id or an action type matched only after folding
	Asked              [4]bool
}

// Evaluate decides a case. An error means that a document of the case is refused (400).
func Evaluate(c *Case) (Outcome, error) {
	e := evaluation{c: c}
	if c.Stopped {
		e.find(Finding{Code: "organization.stopped", Outcome: Deny})
	}
	for _, check := range []func() error{e.policy, e.agent, e.action, e.resource, e.cost} {
		if err := check(); err != nil {
			return Outcome{}, err
		}
	}
	if c.UsageExceeded {
		e.find(Finding{Code: "usage.limit", Outcome: Deny})
	}
	if err := e.rules(); err != nil {
		return Outcome{}, err
	}
	return e.outcome(), nil
}

type evaluation struct {
	c        *Case
	findings []Finding
	whys     []Why // of the condition that is being evaluated
	res      *Resource
	status   string // the agent's status, for rules
	notes    Notes
}

func (e *evaluation) find(f Finding) { e.findings = append(e.findings, f) }

// check adds the finding of a check that objects.
func (e *evaluation) check(outcome, code, field string) {
	e.find(Finding{Code: code, Outcome: outcome, Field: "policy." + field})
}

// outcome returns the outcome of the findings. If no check objects, the finding is policy.allowed.
func (e *evaluation) outcome() Outcome {
	if len(e.findings) == 0 {
		e.find(Finding{Code: "policy.allowed", Outcome: Allow})
	}
	out := Outcome{Decision: Allow, Findings: e.findings, Notes: e.notes}
	for _, f := range e.findings {
		if severity[f.Outcome] > severity[out.Decision] {
			out.Decision = f.Outcome
		}
		out.Codes = append(out.Codes, f.Code)
	}
	slices.Sort(out.Codes)
	out.Codes = slices.Compact(out.Codes)
	return out
}

func (e *evaluation) policy() error {
	if e.c.Policy.Status != "active" {
		e.check(Deny, "policy.inactive", "status")
	}
	return nil
}

// foldID folds an id for check 2 of decisions.md.
func foldID(id string) string {
	seen := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, id)
	return cases.Fold().String(norm.NFKC.String(cases.Fold().String(norm.NFKC.String(seen))))
}

// Registered returns the agent that the intent names, or nil. One of the agent's names equals the name in
// the intent when both are folded. If there are several such agents, it returns the one with the lowest id.
func (c *Case) Registered() *Agent {
	id := foldID(c.Intent.AgentID)
	var found *Agent
	for i, a := range c.Agents {
		named := foldID(a.ID) == id || a.ExternalID != "" && foldID(a.ExternalID) == id
		if named && (found == nil || a.ID < found.ID) {
			found = &c.Agents[i]
		}
	}
	return found
}

// agentNames returns the names of the agent for rules: as sent, its id and its external id.
func (c *Case) agentNames() []string {
	names := []string{c.Intent.AgentID}
	if a := c.Registered(); a != nil {
		names = append(names, a.ID)
		if a.ExternalID != "" {
			names = append(names, a.ExternalID)
		}
	}
	return names
}

func (e *evaluation) agent() error {
	id := e.c.Intent.AgentID
	e.status = "unregistered"
	registered, disabled, exactly := false, false, false
	for _, a := range e.c.Agents {
		exact := a.ID == id || a.ExternalID == id
		if exact {
			registered = true
			e.status = "active"
		}
		if exact || foldID(a.ID) == foldID(id) || a.ExternalID != "" && foldID(a.ExternalID) == foldID(id) {
			disabled = disabled || a.Status == "disabled"
			exactly = exactly || exact && a.Status == "disabled"
		}
	}
	if disabled {
		e.status = "disabled"
		e.notes.FoldedID = !exactly
		e.find(Finding{Code: "agent.disabled", Outcome: Deny})
	}
	if e.c.RequireRegistered && !registered && !disabled {
		e.find(Finding{Code: "agent.unregistered", Outcome: Deny})
	}
	if g := e.c.Policy.AgentID; g != id && !globString(g, id, parseGlob) {
		e.check(ApprovalRequired, "agent.mismatch", "agent_id")
	}
	return nil
}

// globString reports whether a glob matches a text that is not a resource.
func globString(glob, s string, parse func(string) ([]text, []token, error)) bool {
	alternatives, tokens, err := parse(glob)
	return err == nil && slices.ContainsFunc(alternatives, func(a text) bool {
		return match(a, tokens, text(s), matching{})
	})
}

func (e *evaluation) action() error {
	action := e.c.Intent.ActionType
	denied := slices.ContainsFunc(e.c.Policy.DeniedTypes, func(d string) bool { return starMatch(d, action) })
	if !denied && slices.ContainsFunc(e.c.Policy.DeniedTypes, func(d string) bool { return foldedType(d, action) }) {
		denied = true
		e.notes.FoldedOp = true
	}
	if denied {
		e.check(Deny, "action.denied", "denied_action_types")
	}
	if !slices.ContainsFunc(e.c.Policy.AllowedTypes, func(a string) bool { return starMatch(a, action) }) {
		e.check(Deny, "action.not_allowed", "allowed_action_types")
	}
	return nil
}

// starMatch reports whether a pattern matches an action type. Only * is a wildcard.
func starMatch(pattern, s string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	if !strings.HasPrefix(s, before) {
		return false
	}
	for rest := s[len(before):]; ; rest = rest[1:] {
		if starMatch(after, rest) {
			return true
		}
		if rest == "" {
			return false
		}
	}
}

// foldedType reports whether a denied type matches another spelling of action.
func foldedType(denied, action string) bool {
	separators := "_-"
	if strings.Contains(denied, "*") {
		separators = ""
	}
	return starMatch(foldType(denied, separators), foldType(action, separators))
}

func foldType(s, separators string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(separators, r) {
			return '.'
		}
		return r
	}, strings.ToLower(s))
	for strings.Contains(s, "..") {
		s = strings.ReplaceAll(s, "..", ".")
	}
	return s
}

func (e *evaluation) resource() error {
	r, err := Read(e.c.Intent.Resource)
	if err != nil {
		return err
	}
	e.res = r
	blocked, err := readPatterns(e.c.Policy.BlockedPatterns)
	if err != nil {
		return err
	}
	allowed, err := readPatterns(e.c.Policy.AllowedPatterns)
	if err != nil {
		return err
	}
	for _, p := range blocked {
		if reader, ok := Blocked(p, r); ok {
			e.notes.BlockedBy = append(e.notes.BlockedBy, blockers(p, r)...)
			e.notes.Blocked = reader
		}
	}
	if e.notes.Blocked != "" {
		e.check(Deny, "resource.blocked", "blocked_resource_patterns")
	}
	if len(allowed) > 0 {
		if reader, ok := Outside(allowed, r); ok {
			e.notes.OutsideOf = objectors(allowed, r)
			e.notes.Outside = reader
			e.check(Deny, "resource.not_allowed", "allowed_resource_patterns")
		}
	}
	return nil
}

func readPatterns(patterns []string) ([]*Pattern, error) {
	var out []*Pattern
	for _, s := range patterns {
		p, err := ReadPattern(s)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// blockers returns the readers with a reading that the pattern blocks.
func blockers(p *Pattern, r *Resource) []string {
	var out []string
	for _, rd := range r.block {
		if !slices.Contains(out, rd.by) && p.matches(rd, true, nil) {
			out = append(out, rd.by)
		}
	}
	return out
}

// objectors returns the readers with a reading that no pattern allows.
func objectors(patterns []*Pattern, r *Resource) []string {
	var out []string
	for _, rd := range r.allow {
		if !slices.Contains(out, rd.by) && !slices.ContainsFunc(patterns, func(p *Pattern) bool { return p.matches(rd, false, r.stop(rd)) }) {
			out = append(out, rd.by)
		}
	}
	return out
}

func (e *evaluation) cost() error {
	p, cost := e.c.Policy, e.c.Intent.Cost
	if cost == nil {
		return nil
	}
	if p.MaxCostMinor != nil && cost.AmountMinor > *p.MaxCostMinor {
		e.check(Deny, "cost.exceeded", "max_cost_minor")
	}
	if p.Currency != "" && p.Currency != cost.Currency {
		e.check(Deny, "cost.currency", "currency")
	}
	return nil
}

// rules evaluates the active rules by priority until one decides. Of rules of the same priority the
// most restrictive one decides. If a condition cannot be evaluated, rules tries both values, and the
// stricter outcome counts. After an approval that could not be evaluated, only a deny counts.
func (e *evaluation) rules() error {
	rules := slices.DeleteFunc(slices.Clone(e.c.Rules), func(r Rule) bool { return !r.IsActive })
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(severity[b.Decision], severity[a.Decision]),
			cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	asks := false // an approval could not be evaluated
	for _, r := range rules {
		e.notes.Asked[r.Form], e.whys = true, nil
		matches, err := e.matches(r)
		if err != nil {
			return err
		}
		e.notes.Undecided = e.notes.Undecided || matches == broken
		if matches == no || matches == broken && r.Decision == Allow {
			continue
		}
		f := Finding{Code: "rule." + r.Decision, Outcome: r.Decision, RuleID: r.ID}
		if matches == broken {
			f.Whys = e.whys
		}
		if !asks || r.Decision == Deny {
			e.find(f)
		}
		if matches == yes || r.Decision == Deny {
			break
		}
		asks = true
	}
	return nil
}
