package scrub

// The limits of this package, each with its reason.
const (
	// minCard is how many digits a card number has at least (ISO/IEC 7812).
	minCard = 13
	// minDigest is the length of the shortest digest, in hex, whose digits are no card's.
	minDigest = 32
	// minEncoded is how many consecutive letters, digits and underscores a text needs to
	// be searched for encoded secrets. Base64 of ASCII has other digits only where every
	// third character is one of > ? ~.
	minEncoded = 16
	// minLine is the least length of a line of digits that the next line continues.
	minLine = 60
	// maxName is how many bytes before a value are read as its name.
	maxName = 64
	// minSecret is the length of the shortest secret: shorter ones occur by chance in
	// ordinary words. A contextual rule requires more after its operator, or
	// TestSuspect_HasNoFalseNegatives fails.
	minSecret = 4
	// maxFolded is how many secrets of a resource are searched for in its normal form:
	// each costs a pass. Genuine resources have fewer.
	maxFolded = 32
	// maxWork bounds the bytes that all rules together read of a text, or of the
	// values of an intent, in all their readings. A document may take eight times as
	// much. Only text that is made to keep the service busy needs more.
	maxWork = 32 << 10
	// maxKeys is how many keys a Tagger knows: a filter is tried under each.
	maxKeys = 16
	// maxRounds is how often a text is read: as it is, and each time that its escapes
	// are decoded once more. It is also how often an identity is scrubbed until nothing
	// more is found: ordinary identities take one round, those with a secret two.
	maxRounds = 4
)
