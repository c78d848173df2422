package engine

// Plan is what an organization's subscription entitles it to.
type Plan struct {
	Name string `json:"name"`
	// Evaluations is how many distinct intents are decided in a calendar month
	// (UTC) before further ones are denied.
	Evaluations int64 `json:"evaluations"`
	// Agents and Policies are how many of each can be registered.
	Agents   int `json:"agents"`
	Policies int `json:"policies"`
	// Rules is how many rules can be kept, active or not; 0 sets no limit.
	Rules int `json:"rules"`
	// Tokens is how many API keys can be usable at a time; 0 sets no limit.
	Tokens int `json:"tokens"`
	// RetentionDays is how long the authorization history is kept, 0 for good.
	RetentionDays int `json:"retention_days"`
	// CSVExport entitles to the export of the authorization history.
	CSVExport bool `json:"csv_export"`
}

// FreePlan is the plan of an organization without a subscription.
const FreePlan = "free"

// DefaultPlans returns the plans of a deployment that configures none, by name.
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
