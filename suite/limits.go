package suite

const (
	// maxCases bounds the cases of a suite, which multiply.
	maxCases = 100_000
	// maxProblems bounds what is said of a suite: each is looked up in its file.
	maxProblems = 500
	// maxExplained is how many rules are explained that could have decided as wanted.
	maxExplained = 5
)
