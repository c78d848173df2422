package storage

import "time"

// Subscription is an organization's plan, as the billing service last reported it. An organization
// without a Subscription is on the free plan.
type Subscription struct {
	OrganizationID string `json:"organization_id"`
	// Plan is the current plan. It is the free plan if nothing is paid for.
	Plan string `json:"plan"`
	// Status is the state of the subscription, as the billing service names it.
	Status            string    `json:"status"`
	CustomerID        string    `json:"customer_id,omitzero"`
	SubscriptionID    string    `json:"subscription_id,omitzero"`
	ItemID            string    `json:"item_id,omitzero"` // the item of the subscription that charges for the plan
	CurrentPeriodEnd  time.Time `json:"current_period_end,omitzero"`
	CancelAtPeriodEnd bool      `json:"cancel_at_period_end,omitzero"`
	UpdatedAt         time.Time `json:"updated_at"`
	// Past has each earlier plan once, with the latest at the end.
	Past []PastPlan `json:"past,omitzero"`

	// Began is when the billing service created the subscription. The other field is the newest
	// event of the subscription. An event before that event has arrived late.
	Began time.Time         `json:"began,omitzero"`
	Last  SubscriptionEvent `json:"last,omitzero"`
	// Ended has the ids of earlier subscriptions of the organization that ended most recently. Late
	// events of an ended subscription are ignored.
	Ended []string `json:"ended,omitzero"`
}

// PastPlan is an earlier plan and when it ended.
type PastPlan struct {
	Plan  string    `json:"plan"`
	Until time.Time `json:"until"`
}

// SubscriptionEvent is a position in the order of a subscription's events.
type SubscriptionEvent struct {
	// At is the time of the event, in whole seconds, as the billing service has it. Rank orders
	// events with the same At by their kinds.
	At   time.Time `json:"at,omitzero"`
	Rank int       `json:"rank,omitzero"`
	// IDs are the ids of the handled events at this position.
	IDs []string `json:"ids,omitzero"`
}
