package scrub

// The limits of this package, each with its reason.
const (
	// minSecret is the length of the shortest secret: shorter ones occur by chance in
	// ordinary words. A contextual rule requires more after its operator, or
	// TestSuspect_HasNoFalseNegatives fails.
	minSecret = 4
	// maxWork bounds the bytes that all rules together read of a text, or of the
	// values of an intent, in all their readings. A document may take eight times as
	// much, and so may the search for a resource's secrets in its normal form. Only text
	// that is made to keep the service busy needs more.
	maxWork = 32 << 10
	// maxRounds is how often a text is read: as it is, and each time that its escapes
	// are decoded once more. It is also how often an identity is scrubbed until nothing
	// more is found: ordinary identities take one round, those with a secret two.
	maxRounds = 4
)
