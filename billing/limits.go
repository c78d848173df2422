package billing

// The limits of this package, each with its reason.
const (
	// maxRetries are retries of a call that Stripe says, or the network implies,
	// did not happen. They carry the Idempotency-Key of the first.
	maxRetries = 1
	// maxReference is the greatest length of a client_reference_id at Stripe.
	maxReference = 200
	// maxOrganization is the greatest length of a metadata value at Stripe.
	maxOrganization = 500
	// maxUnix is the last second that RFC 3339 can write.
	maxUnix = 253402300799
	// maxRemembered bounds the events that are remembered of one second, and the ended
	// subscriptions of an organization.
	maxRemembered = 32
)
