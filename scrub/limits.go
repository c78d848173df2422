package scrub

// The limits of this package, each with its reason.
const (
	// minCard and maxCard are how many digits a card number has (ISO/IEC 7812).
	minCard = 13
	maxCard = 19
	// minDigest is the length of the shortest digest, in hex, whose digits are no card's.
	minDigest = 32
	// minEncoded is how many letters, digits and underscores in a row a text has
	// that is searched for encoded secrets. Base64 of ASCII has other digits only
	// for every third character that is one of > ? ~.
	minEncoded = 16
	// minLine is how long a line of digits is that goes on in the next.
	minLine = 60
	// maxName bounds how much of a name before a value is looked at.
	maxName = 64
	// minAssigned is the fewest bytes that a contextual rule wants after its
	// operator; TestSuspect_HasNoFalseNegatives would show a rule that wants fewer.
	minAssigned = 6
	// maxFolded bounds how many secrets of a resource are looked for in the form to
	// keep: each costs a pass. No resource that anybody means has as many.
	maxFolded = 32
	// minFolded is the length of the shortest secret that is looked for there. What
	// is shorter stands in words that say nothing about it.
	minFolded = 4
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
