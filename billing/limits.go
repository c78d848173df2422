package billing

// The limits of this package, each with its reason.
const (
	// maxRemembered is how many events of one second, and how many ended subscriptions of
	// an organization, are remembered.
	maxRemembered = 32
)
