// Package billing sells plans through Stripe. Checkout takes the first payment. Stripe's Billing
// Portal changes the purchase. Signed webhooks change the organization's plan. No other package
// talks to Stripe or uses its names.
//
// # What changes a plan
//
// Only a webhook changes a plan. A browser's return from Checkout proves nothing. Checkout puts
// the organization into the metadata (organization_id) of the session and of the subscription.
// Events carry this metadata. The package ignores an event if it names no organization, belongs
// to a connected account, or has a kind that is not listed here.
//
//	checkout.session.completed     the plan that was paid for, until an event of the
//	                               subscription itself arrives
//	customer.subscription.created  \
//	customer.subscription.updated   > the subscription as it then was
//	customer.subscription.deleted  /
//	invoice.payment_failed         status past_due; the plan stays
//
// A subscription with the status active, trialing or past_due gives the plan whose price it
// charges. While it is past_due, Stripe still tries to collect. When Stripe gives up, it sets the
// status that its dashboard configures: unpaid or canceled. A subscription in any other status, or
// with an unconfigured price, gives the free plan. A subscription that is incomplete has not begun
// and is ignored.
//
// # Order
//
// Stripe delivers events more than once and in any order. Event times are in whole seconds. The
// latest event of a subscription counts. Among events of the same second, updated counts as later
// than created, and deleted as later than updated. A canceled subscription stays canceled. A
// different subscription replaces the stored one only if it gives a plan and its event is later
// than all earlier events. The package also stores that an unknown subscription has ended,
// because older events of that subscription may arrive later.
package billing
