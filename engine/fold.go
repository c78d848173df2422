package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// FoldID returns the form in which the kill switch compares ids of agents: two
// ids are the same agent's when their forms are equal. It is Unicode's
// compatibility caseless matching (D146): NFKC and case folding, until neither
// changes anything. An id in ASCII without upper-case letters is its own form.
func FoldID(id string) string {
	for i := range len(id) {
		if c := id[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return norm.NFKC.String(foldCase(norm.NFKC.String(foldCase(norm.NFD.String(id)))))
		}
	}
	return id
}

// foldCase is Unicode's full case folding. Package cases swaps the two cases of
// Cherokee instead of folding them to capitals.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cherokee, r) {
			return unicode.ToUpper(r)
		}
		return r
	}, cases.Fold().String(s))
}

// namesakes are the agents of an organization that one folded name means.
type namesakes struct {
	// disabled reports that one of them is: it denies for all.
	disabled bool
	// registered are the names of all of them as they were registered.
	registered []string
	// revision is the greatest of them.
	revision int64
}

func newNamesakes(agents []*Agent) namesakes {
	var n namesakes
	for _, a := range agents {
		n.revision = max(n.revision, a.Revision)
		n.disabled = n.disabled || a.Status != AgentActive
		n.registered = append(n.registered, a.ID)
		if a.ExternalID != "" {
			n.registered = append(n.registered, a.ExternalID)
		}
	}
	return n
}

// status returns the status of the agent that an intent calls id. It is
// registered only under that very name.
func (n namesakes) status(id string) AgentStatus {
	switch {
	case n.disabled:
		return AgentDisabled
	case slices.Contains(n.registered, id):
		return AgentActive
	}
	return AgentUnregistered
}

// size returns about how many bytes n takes in the cache.
func (n namesakes) size() int64 {
	total := int64(agentBytes)
	for _, name := range n.registered {
		total += int64(len(name)) + 16
	}
	return total
}
