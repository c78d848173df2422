package engine

// Plan has the limits and features of an organization's subscription.
type Plan struct {
	Name string `json:"name"`
	// Evaluations is the number of distinct intents that are decided in a calendar month (UTC).
	// Further intents are denied.
	Evaluations int64 `json:"evaluations"`
	// Agents and Policies are the greatest numbers of registered agents and policies.
	Agents   int `json:"agents"`
	Policies int `json:"policies"`
	// Rules is the greatest number of rules, active or not. 0 sets no limit.
	Rules int `json:"rules"`
	// Tokens is the greatest number of usable API keys at a time. 0 sets no limit.
	Tokens int `json:"tokens"`
	// RetentionDays is the number of days for which the authorization history is kept. 0 keeps it
	// forever.
	RetentionDays int `json:"retention_days"`
	// CSVExport says that the organization may export the authorization history.
	CSVExport bool `json:"csv_export"`
}

// FreePlan is the plan of an organization without a subscription.
const FreePlan = "free"

// DefaultPlans returns the plans by name for a deployment that configures no plans.
func DefaultPlans() map[string]Plan {
	return map[string]Plan{
		FreePlan: {Name: FreePlan, Evaluations: 10_000, Agents: 5, Policies: 10, Rules: 100, Tokens: 100,
			RetentionDays: 7},
		"pro": {Name: "pro", Evaluations: 1_000_000, Agents: 100, Policies: 500, Rules: 1000, Tokens: 1000,
			RetentionDays: 90},
		"business": {Name: "business", Evaluations: 50_000_000, Agents: 10_000, Policies: 50_000, Rules: 10_000,
			Tokens: 10_000, RetentionDays: 400, CSVExport: true},
	}
}
