package engine

import (
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// The greatest sizes of documents, in bytes or in entries. The limits of intents are in package
// condition.
const (
	// MaxSetting is the greatest number that people can set: the priority of a rule, a rate,
	// megabytes, or the N of a share 1/N.
	MaxSetting = 1_000_000
	// MaxReason is the greatest length of a reason in characters.
	MaxReason = 500
	// MaxListValues is the greatest number of values in a list. Each value has up to
	// [condition.MaxLabel] bytes.
	MaxListValues = 10_000
	// MaxSessionSeconds is the longest time for which a session lasts: a week.
	MaxSessionSeconds = 7 * 24 * 60 * 60
)

// Normalize writes the intent's UUIDs in lower case, as in RFC 9562. So an intent that is sent in
// either spelling is the same intent.
func (in *Intent) Normalize() {
	in.IntentID = LowerUUID(in.IntentID)
	in.PolicyID = LowerUUID(in.PolicyID)
}

// LowerUUID returns a UUID, or any other text, in lower case.
func LowerUUID(s string) string {
	if condition.IsUUID(s) {
		return s
	}
	return strings.ToLower(s)
}

// Normalize writes the policy's UUID in lower case.
func (p *ActionPolicy) Normalize() { p.PolicyID = LowerUUID(p.PolicyID) }

// Validate returns an [*InvalidError] that names every invalid field, or nil. The intent's UUIDs
// must be in lower case: see [Intent.Normalize]. Validate keeps the readings of the resource in
// the intent. No other goroutine may use the intent meanwhile.
func (in *Intent) Validate() error {
	var p problems
	for i := range condition.Members {
		m := &condition.Members[i]
		if s := *in.Text(m.ID); s != "" || !m.Optional {
			p.member(m, s, in)
		}
	}
	if in.Cost != nil {
		p.amount("intent.cost.amount_minor", in.Cost.AmountMinor)
		p.currency("intent.cost.currency", in.Cost.Currency)
	}
	p.metadata("intent.metadata", in.Metadata)
	return p.err()
}

func (p *problems) member(m *condition.Member, s string, in *Intent) {
	switch m.Form {
	case condition.UUIDForm:
		p.uuid(m.Path, s)
	case condition.ActionForm:
		p.actionType(m.Path, s, "")
	case condition.ResourceForm:
		in.readings = p.resource(m.Path, s)
	case condition.TimeForm:
		p.timestamp(m.Path, s)
	default:
		p.text(m.Path, s, m.Size)
	}
}

// Validate returns an [*InvalidError] that names every invalid field, or nil. The policy's UUID
// must be in lower case: see [ActionPolicy.Normalize]. A nil AllowedActionTypes is a missing
// member. An empty one allows nothing.
func (p *ActionPolicy) Validate() error {
	var e problems
	p.validateFields(&e)
	e.patterns(fieldAllowedPatterns, p.AllowedResourcePatterns, resource.ForAllow)
	e.patterns(fieldBlockedPatterns, p.BlockedResourcePatterns, resource.ForBlock)
	return e.err()
}

// validateFields validates all members except the resource patterns. These are also checked when
// the policy is compiled.
func (p *ActionPolicy) validateFields(e *problems) {
	e.uuid("policy.policy_id", p.PolicyID)
	switch {
	case p.Version == 0:
		e.add("policy.version", "is missing or 0: want an integer from 1 to %d", int64(condition.MaxInteger))
	case p.Version < 1 || p.Version > condition.MaxInteger:
		e.add("policy.version", "want an integer from 1 to %d", int64(condition.MaxInteger))
	}
	e.text("policy.organization_id", p.OrganizationID, condition.MaxName)
	e.agentPattern(fieldAgentID, p.AgentID)
	if p.AllowedActionTypes == nil {
		e.add(fieldAllowedTypes, "is required; [] allows nothing")
	}
	e.actionTypes(fieldAllowedTypes, p.AllowedActionTypes)
	e.actionTypes(fieldDeniedTypes, p.DeniedActionTypes)
	e.length(fieldAllowedPatterns, len(p.AllowedResourcePatterns))
	e.length(fieldBlockedPatterns, len(p.BlockedResourcePatterns))
	if p.MaxCostMinor != nil {
		e.amount(fieldMaxCost, *p.MaxCostMinor)
	}
	if p.Currency != "" {
		e.currency(fieldCurrency, p.Currency)
	}
	switch p.Status {
	case StatusActive, StatusSuspended, StatusRevoked:
	case "":
		e.add(fieldStatus, "is required: want active, suspended or revoked")
	default:
		e.add(fieldStatus, "want active, suspended or revoked%s",
			didYouMean(string(p.Status), "active", "suspended", "revoked"))
	}
	if y := p.UpdatedAt.Year(); p.UpdatedAt.IsZero() {
		e.add("policy.updated_at", "is required: want an RFC 3339 time")
	} else if y < 1 || y > 9999 {
		e.add("policy.updated_at", "want a year from 1 to 9999")
	}
}

// Validate returns an [*InvalidError] that names every invalid field, or nil. It does not check
// the contents of the condition and the action: [CompileRule] does.
func (r *Rule) Validate() error {
	var p problems
	p.text("name", r.Name, condition.MaxLabel)
	p.optionalText("description", r.Description, condition.MaxText)
	p.document("condition", r.Condition, `{"action_type":"deploy"}`, condition.MaxCondition)
	p.document("action", r.Action, `{"decision":"deny"}`, condition.MaxText)
	if r.Priority < -MaxSetting || r.Priority > MaxSetting {
		p.add("priority", "want an integer from %d to %d", -MaxSetting, MaxSetting)
	}
	return p.err()
}
