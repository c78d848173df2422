package storage

// Kind says what a Change changed.
type Kind uint8

// The kinds of change a watcher hears of.
const (
	PolicyChanged Kind = iota + 1
	RulesChanged
	AgentChanged
	TokenChanged
	SubscriptionChanged
)

// Change names a document that was written or removed. ID is the policy's,
// agent's or token's, and empty for rules, which take effect as a whole, and
// for subscriptions. ExternalID is an agent's other name, where it has one.
type Change struct {
	Kind           Kind
	OrganizationID string
	ID             string
	ExternalID     string
}
