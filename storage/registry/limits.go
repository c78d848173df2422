package registry

// The limits of this package, each with its reason.
const (
	// maxWebhooks is how many webhooks an organization may have: an event is stored once
	// for each that wants it.
	maxWebhooks = 20
	// maxPending is from how many pending deliveries on an organization's facts of the
	// history wait there: some 100 MB. It keeps a fifth of it of deliveries that ended,
	// whatever their age.
	maxPending = 100_000
	// maxSkipped is how many deliveries of another status a page looks past.
	maxSkipped = 1000
)
