package suite

const (
	// maxExplained is how many rules are explained that could have decided as wanted.
	maxExplained = 5
)
