package core

// The limits of this package, each with its reason.
const (
	// maxAnswer is how many bytes an answer may have: some 80 reasons of rules, which with
	// the rule's name have some 800 characters each. One reason has at most
	// [condition.MaxText] bytes.
	maxAnswer = 64 << 10
)
