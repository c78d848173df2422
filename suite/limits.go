package suite

const (
	// maxCases bounds the cases of a suite, which multiply.
	maxCases = 100_000
	// maxExplained is how many rules are explained that could have decided as wanted.
	maxExplained = 5
)
