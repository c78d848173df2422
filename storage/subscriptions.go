package storage

import "time"

// Subscription is an organization's plan as billing last reported it. An
// organization without one is on the free plan.
type Subscription struct {
	OrganizationID string `json:"organization_id"`
	// Plan is the plan that is in force: the free one when nothing is paid for.
	Plan string `json:"plan"`
	// Status is what billing calls the subscription's state.
	Status            string    `json:"status"`
	CustomerID        string    `json:"customer_id,omitzero"`
	SubscriptionID    string    `json:"subscription_id,omitzero"`
	ItemID            string    `json:"item_id,omitzero"` // of the subscription, what the plan is charged by
	CurrentPeriodEnd  time.Time `json:"current_period_end,omitzero"`
	CancelAtPeriodEnd bool      `json:"cancel_at_period_end,omitzero"`
	UpdatedAt         time.Time `json:"updated_at"`
	// Past are the plans that were in force before, each once, the last one last.
	Past []PastPlan `json:"past,omitzero"`

	// Began is when the subscription was made at billing, and Last the newest
	// event of it that was taken in: they tell what came late from what is news.
	Began time.Time         `json:"began,omitzero"`
	Last  SubscriptionEvent `json:"last,omitzero"`
	// Ended are other subscriptions that are known to have ended, the last ones:
	// what is heard of them late gives no plan.
	Ended []string `json:"ended,omitzero"`
}

// PastPlan is a plan that was in force until another was.
type PastPlan struct {
	Plan  string    `json:"plan"`
	Until time.Time `json:"until"`
}

// SubscriptionEvent is a place in the order of a subscription's events.
type SubscriptionEvent struct {
	// At has the resolution of billing's clock, one second; Rank orders the kinds
	// of event within it.
	At   time.Time `json:"at,omitzero"`
	Rank int       `json:"rank,omitzero"`
	// IDs are the events of this very place that were taken in.
	IDs []string `json:"ids,omitzero"`
}
