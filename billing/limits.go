package billing

// The limits of this package, each with its reason.
const (
	// maxOrganization is the greatest length of a metadata value at Stripe, in characters.
	maxOrganization = 500
	// maxRemembered bounds the events that are remembered of one second, and the ended
	// subscriptions of an organization.
	maxRemembered = 32
)
