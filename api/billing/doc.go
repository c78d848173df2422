// Package billing sells plans through Stripe: Checkout takes the first payment,
// the Billing Portal changes what was bought, and signed webhooks move the
// organization's plan. It alone talks to Stripe and knows its names.
//
// # What moves a plan
//
// Only a webhook moves a plan: a browser's return from Checkout proves nothing. Checkout
// puts the organization into the metadata (organization_id) of the session and of the
// subscription, and the events carry it. Events without an organization, of a kind that is
// not listed here, or of a connected account are ignored.
//
//	checkout.session.completed     the plan that was paid for, until an event of the
//	                               subscription itself arrives
//	customer.subscription.created  \
//	customer.subscription.updated   > the subscription as it then was
//	customer.subscription.deleted  /
//	invoice.payment_failed         status past_due; the plan stays
//
// A subscription gives the plan whose price it charges while its status is
// active, trialing or past_due: Stripe is still trying to collect. Its dashboard sets
// the status after it gives up: unpaid or canceled. In any
// other status, or at a price that is not configured, it gives the free plan. A
// subscription that is incomplete has not begun and is ignored.
//
// # Order
//
// Stripe delivers events more than once and in any order, stamped to the second.
// The latest event of a subscription counts. Within a second, updated follows created
// and deleted follows updated. A canceled subscription stays canceled. A different
// subscription takes over only if it gives a plan and its event is later than all events
// before. The end of an unknown subscription is remembered, too: its other events may
// arrive later.
package billing
