package registry

// The limits of this package, each with its reason.
const (
	// maxWebhooks is how many webhooks an organization may have: an event is stored once
	// for each that wants it.
	maxWebhooks = 20
	// maxPending is from how many pending deliveries on an organization's facts of the
	// history wait there: some 100 MB.
	maxPending = 100_000
	// maxEnded is how many deliveries that ended an organization keeps, whatever their age.
	maxEnded = 20_000
	// maxSkipped is how many deliveries of another status a page looks past.
	maxSkipped = 1000
)
