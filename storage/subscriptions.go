package storage

import (
	"context"
	"time"
)

// Subscription is an organization's plan as billing last reported it. An
// organization without one is on the free plan.
type Subscription struct {
	OrganizationID   string    `json:"organization_id"`
	Plan             string    `json:"plan"`
	Status           string    `json:"status"`
	CustomerID       string    `json:"customer_id,omitzero"`
	SubscriptionID   string    `json:"subscription_id,omitzero"`
	CurrentPeriodEnd time.Time `json:"current_period_end,omitzero"`
	UpdatedAt        time.Time `json:"updated_at"`
}

// Subscriptions keeps one subscription an organization.
type Subscriptions interface {
	// PutSubscription stores or replaces s.
	PutSubscription(ctx context.Context, s *Subscription) error
	// Subscription returns org's, or ErrNotFound.
	Subscription(ctx context.Context, org string) (*Subscription, error)
}
