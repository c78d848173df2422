package billing

// The limits of this package, each with its reason.
const (
	// maxOrganization is the greatest length of a metadata value at Stripe, in characters.
	maxOrganization = 500
	// maxRemembered is how many events of one second, and how many ended subscriptions of
	// an organization, are remembered.
	maxRemembered = 32
)
