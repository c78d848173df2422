package registry

// The limits of this package, each with its reason.
const (
	// maxWebhooks is how many webhooks an organization may have: an event is stored once
	// for each that wants it.
	maxWebhooks = 20
	// maxPending is how much of one kind an organization may have that time will remove:
	// sessions that are not swept yet, and deliveries that are pending, some 100 MB, from
	// which on its facts wait in the history. It keeps a fifth of it of deliveries that
	// ended, whatever their age.
	maxPending = 100_000
)
