package engine

import (
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// Cost is the cost of an action in minor units of an ISO 4217 currency. 1250 EUR is €12.50.
type Cost struct {
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// FactPrefix is the prefix of metadata keys whose values come from the integration and not from
// the agent. Rules read keys exactly, so no key without this prefix is a fact.
const FactPrefix = "fact."

// Intent is an action that an agent proposes: the contract's ActionIntent. It must pass
// [Intent.Validate] before it is evaluated.
type Intent struct {
	IntentID   string            `json:"intent_id"`
	PolicyID   string            `json:"policy_id"`
	AgentID    string            `json:"agent_id"`
	ActionType string            `json:"action_type"`
	Resource   string            `json:"resource"`
	Cost       *Cost             `json:"cost,omitzero"`
	Metadata   map[string]string `json:"metadata,omitzero"`
	// IssuedAt is kept as the caller wrote it (RFC 3339), because the intent's
	// digest covers its spelling.
	IssuedAt string `json:"issued_at"`
	// SessionID is the session that the intent is proposed in, empty for none. In a request
	// it stands beside the intent.
	SessionID string `json:"-"`

	// readings are the readings of Resource at the time of Validate.
	readings resource.Readings
}

// Issued returns IssuedAt in the form of [Input.DecidedAt], or the zero time if it is not a time.
// Offline an intent is decided at this time, unless the author says another one.
func (in *Intent) Issued() time.Time {
	at, err := condition.ParseTime(in.IssuedAt)
	if err != nil {
		return time.Time{}
	}
	return ClockTime(at)
}

// ClockTime returns a time in the form of [Input.DecidedAt]: in UTC and in whole milliseconds.
func ClockTime(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

// Text returns a pointer to the member of the intent with this id, which must be a text: see
// [condition.Members].
func (in *Intent) Text(id condition.FieldID) *string {
	switch id {
	case condition.IntentID:
		return &in.IntentID
	case condition.PolicyID:
		return &in.PolicyID
	case condition.AgentID:
		return &in.AgentID
	case condition.ActionType:
		return &in.ActionType
	case condition.Resource:
		return &in.Resource
	case condition.IssuedAt:
		return &in.IssuedAt
	}
	return nil
}

// Readings returns the readings of the intent's resource, or a *[resource.Error]. Validate
// keeps them, so that the resource is read again only if it has changed since.
func (in *Intent) Readings() (resource.Readings, error) {
	if in.readings.Raw() != "" && in.readings.Raw() == in.Resource {
		return in.readings, nil
	}
	return resource.Read(in.Resource)
}

// Status says whether a policy can allow intents.
type Status string

// The statuses of a policy. Only an active policy can allow anything.
const (
	StatusActive    Status = "active"
	StatusSuspended Status = "suspended"
	StatusRevoked   Status = "revoked"
)

// ActionPolicy is one version of a registered policy: the contract's ActionPolicy. The content of
// a stored version never changes.
type ActionPolicy struct {
	Stored
	PolicyID                string    `json:"policy_id"`
	Version                 int64     `json:"version"`
	OrganizationID          string    `json:"organization_id"`
	AgentID                 string    `json:"agent_id"`
	AllowedActionTypes      []string  `json:"allowed_action_types"`
	DeniedActionTypes       []string  `json:"denied_action_types,omitzero"`
	AllowedResourcePatterns []string  `json:"allowed_resource_patterns,omitzero"`
	BlockedResourcePatterns []string  `json:"blocked_resource_patterns,omitzero"`
	MaxCostMinor            *int64    `json:"max_cost_minor,omitzero"`
	Currency                string    `json:"currency,omitzero"`
	Status                  Status    `json:"status"`
	UpdatedAt               time.Time `json:"updated_at"`
}

// Rule is a rule of a whole organization: the contract's Rule. Condition and Action are JSON
// documents in strings: see [CompileRule] for their forms.
type Rule struct {
	Stored
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitzero"`
	Condition   string    `json:"condition"`
	Action      string    `json:"action"`
	Priority    int64     `json:"priority"`
	IsActive    bool      `json:"isActive"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

// DefaultPriority is a rule's priority if its author chose none.
const DefaultPriority = 100

// Stored has the members that a store adds to a document.
type Stored struct {
	Revision int64 `json:"-"` // of the last write; 0 if the document comes from no store
}

// SetRevision sets the revision. The code that reads documents from a store calls it.
func (s *Stored) SetRevision(revision int64) { s.Revision = revision }

// AgentStatus is the state of an agent's kill switch.
type AgentStatus string

// The statuses of an agent. AgentUnregistered is never stored: it means that the organization has
// not registered the agent id.
const (
	AgentActive       AgentStatus = "active"
	AgentDisabled     AgentStatus = "disabled"
	AgentUnregistered AgentStatus = ""
)

// String returns the status in the form that conditions compare.
func (s AgentStatus) String() string {
	if s == AgentUnregistered {
		return "unregistered"
	}
	return string(s)
}

// Agent is a governed agent of an organization. An intent names it by its ID or, if it has one, by
// its ExternalID.
type Agent struct {
	Stored
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	ExternalID string      `json:"externalId,omitzero"`
	Status     AgentStatus `json:"status"`
	CreatedAt  time.Time   `json:"createdAt"`
	UpdatedAt  time.Time   `json:"updatedAt"`
}

// Usage is the state of the organization's evaluation meter at the time of an evaluation.
type Usage struct {
	// Exceeded says that the organization's plan allows no further evaluation this month.
	Exceeded bool
}

// FieldError says what is wrong with one field and what would be valid.
type FieldError struct {
	// Field is the field's path, such as "intent.cost.currency" or
	// "policy.blocked_resource_patterns[2]".
	Field   string `json:"field"`
	Message string `json:"message"`
	// In is the mistake with its place inside the field, if the field holds a document. Otherwise
	// it is zero.
	In condition.Mistake `json:"-"`
}

// InvalidError reports every invalid field of a document at once.
type InvalidError struct {
	Fields []FieldError
}

// Error implements error.
func (e *InvalidError) Error() string {
	s := "invalid"
	for i, f := range e.Fields {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		s += sep + f.Field + ": " + f.Message
	}
	return s
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
