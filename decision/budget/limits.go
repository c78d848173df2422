package budget

const (
	// maxWindows is how many windows are kept: some 200 MB with an agent's id of 32 bytes.
	// Below a thousandth of it nothing is forgotten.
	maxWindows = 1 << 20
)
