package budget

const (
	// maxWindows is how many windows are kept: some 200 MB with an agent's id of 32 bytes.
	maxWindows = 1 << 20
	// minSwept is how many windows are kept before empty ones are looked for.
	minSwept = 1024
)
