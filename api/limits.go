package api

// The limits of this package, each with its reason.
const (
	// maxBatch is how many intents a batch may have, and maxBatchBody how many
	// bytes its body, some 40 KB an intent, and the body of a list, some 400 a value.
	maxBatch     = 100
	maxBatchBody = 4 << 20
	// maxShared is the greatest body whose strings may share one copy of it. A
	// larger one would be kept as a whole for the sake of a short string.
	maxShared = 4 << 10
	// maxExports bounds the exports under way, which each take a megabyte and may
	// last as long as their reader likes, and maxOrgExports those of one
	// organization, so that it leaves room for others.
	maxExports    = 64
	maxOrgExports = 4
	// maxParam is how many bytes a parameter of a path or a cursor has: a cursor is an
	// intent id and a time, encoded.
	maxParam = 1024
	// maxName is the greatest length of a display name, a reference or the subject of a
	// token, and how much of a path or a member's name a problem repeats.
	maxName = 256
	// maxReads is how many times a page of the history asks the store, which each
	// time may skip some hundreds of rows, to find what its filter selects.
	maxReads = 200
	// minRSABits is the least size of an RSA key.
	minRSABits = 2048
	// maxEchoed is how many bytes of a caller's value a problem repeats, and how many a
	// caller's request id has, which each log line repeats.
	maxEchoed = 64
	// maxRate bounds both numbers of a limit: what is above it limits nothing.
	maxRate = 1_000_000
	// maxLimit is how many rows a page of a list has at most.
	maxLimit = 500
	// maxRules is the most bytes that an organization's compiled rules may take: half of
	// what the cache keeps of rules by default. A set that is not kept would be compiled
	// for each decision and would evict others.
	maxRules = 32 << 20
	// maxSimulated is the most bytes that the rules of a simulation may take once they are
	// compiled, which is for it alone: some thousands, or a hundred in Rego. maxExplained is
	// how many bytes of conditions an answer explains, so that the rules of an organization
	// fit into memory beside those of others.
	maxSimulated = 8 << 20
	maxExplained = 256 << 10
	// maxWait is for how many seconds a look-up of an approval waits for a verdict: below
	// what proxies take for a connection that is idle.
	maxWait = 60
	// maxWrong is how many rules of a simulation are named that are wrong.
	maxWrong = 20
	// maxSecrets is how many fields with a secret are named: what is said of a body must
	// not outgrow it.
	maxSecrets = 20
	// maxBuckets is how many buckets one limit keeps.
	maxBuckets = 32 << 10
)
