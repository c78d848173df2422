// Package billing sells plans through Stripe: Checkout takes the first payment,
// the Billing Portal changes what was bought, and signed webhooks move the
// organization's plan. It alone talks to Stripe and knows its names.
//
// # What moves a plan
//
// Only a webhook does; coming back from Checkout proves nothing. Checkout puts
// the organization into the metadata (organization_id) of the session and of
// the subscription, and the events bring it back. An event without one is not
// ours and is ignored, as is one of a kind that is not listed here and one of a
// connected account.
//
//	checkout.session.completed     the plan that was paid for, until the
//	                               subscription itself is heard of
//	customer.subscription.created  \
//	customer.subscription.updated   > the subscription as it then was
//	customer.subscription.deleted  /
//	invoice.payment_failed         status past_due; the plan stays
//
// A subscription gives the plan whose price it charges while its status is
// active, trialing or past_due: Stripe is still trying to collect, and what
// happens when it gives up (unpaid or canceled) is set in its dashboard. In any
// other status, or at a price that is not configured, it gives the free plan. A
// subscription that is incomplete has not begun and is ignored.
//
// # Order
//
// Stripe delivers events more than once and in any order, stamped to the second.
// Of one subscription the event with the later time counts; within a second
// deleted is after updated is after created; what is canceled stays canceled.
// A different subscription takes over only if it gives a plan and its event is
// later than all that was taken in before. An end is remembered even of a
// subscription that was never heard of: its other events may follow.
package billing
