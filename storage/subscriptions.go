package storage

import "time"

// Subscription is an organization's plan as billing last reported it. An
// organization without one is on the free plan.
type Subscription struct {
	OrganizationID string `json:"organization_id"`
	// Plan is the plan that is in force. It is the free plan if nothing is paid for.
	Plan string `json:"plan"`
	// Status is the subscription's state, in the words of the billing service.
	Status            string    `json:"status"`
	CustomerID        string    `json:"customer_id,omitzero"`
	SubscriptionID    string    `json:"subscription_id,omitzero"`
	ItemID            string    `json:"item_id,omitzero"` // the item of the subscription that charges for the plan
	CurrentPeriodEnd  time.Time `json:"current_period_end,omitzero"`
	CancelAtPeriodEnd bool      `json:"cancel_at_period_end,omitzero"`
	UpdatedAt         time.Time `json:"updated_at"`
	// Past has each earlier plan once, with the latest at the end.
	Past []PastPlan `json:"past,omitzero"`

	// Began is when billing created the subscription. Last is the newest event of the
	// subscription so far. An event older than Last has arrived late.
	Began time.Time         `json:"began,omitzero"`
	Last  SubscriptionEvent `json:"last,omitzero"`
	// Ended has the ids of the organization's other subscriptions that ended last. Late events
	// of an ended subscription are ignored.
	Ended []string `json:"ended,omitzero"`
}

// PastPlan is an earlier plan and when it ended.
type PastPlan struct {
	Plan  string    `json:"plan"`
	Until time.Time `json:"until"`
}

// SubscriptionEvent is a place in the order of a subscription's events.
type SubscriptionEvent struct {
	// At has the resolution of billing's clock, one second. Rank orders the kinds of event
	// within one second.
	At   time.Time `json:"at,omitzero"`
	Rank int       `json:"rank,omitzero"`
	// IDs are the ids of the events at this place that were handled.
	IDs []string `json:"ids,omitzero"`
}
