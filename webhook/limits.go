package webhook

// The limits of this package, each with its reason.
const (
	// maxAnswer is how much of an answer is read, so that its connection can be used again;
	// nothing of it is kept. Its header may have as many bytes.
	maxAnswer = 16 << 10
	// maxWorking is how many webhooks are worked on at once, and maxConnections how many
	// connections each may have: a batch of each is in memory.
	maxWorking     = 64
	maxConnections = 8
)
